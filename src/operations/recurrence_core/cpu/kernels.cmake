# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(OPENCL "recurrence/cpu/forward.cl|cpu.def|DTYPE=0" "recurrence/cpu/delta_forward.cl|cpu.def|DTYPE=0"
  "recurrence/cpu/backward.cl|cpu.def|DTYPE=0")
