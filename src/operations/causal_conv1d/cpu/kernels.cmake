# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(OPENCL "state_space/cpu/conv_forward.cl|cpu.def" "state_space/cpu/conv_backward.cl|cpu.def")
