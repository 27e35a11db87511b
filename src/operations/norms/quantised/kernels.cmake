# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "norms/quantised/forward.comp|DTYPE=0,1,2"
  OPENCL "norms/quantised/forward.cl|tunables.def|WG_X=64" "norms/quantised/cpu.cl|cpu.def")
