# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(OPENCL "norms/cpu/forward.cl|tunables.def" "norms/cpu/backward.cl|tunables.def")
