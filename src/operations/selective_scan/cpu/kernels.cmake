# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(OPENCL "state_space/cpu/scan_forward.cl|cpu.def" "state_space/cpu/scan_gradients.cl|cpu.def")
