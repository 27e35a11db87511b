# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "norms/rows/forward.comp|DTYPE=0,1,2" "norms/rows/backward.comp|DTYPE=0,1,2" "norms/rows/combine.comp|DTYPE=0,1,2"
  OPENCL "norms/rows/forward.cl|tunables.def|WG_X=64" "norms/rows/backward.cl|tunables.def|WG_X=64"
         "norms/rows/combine.cl|tunables.def|WG_X=8")
