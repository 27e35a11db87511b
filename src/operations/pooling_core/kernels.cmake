# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "pooling/prepare.comp" "pooling/forward.comp|DTYPE=0,1,2" "pooling/combine.comp|DTYPE=0,1,2"
          "pooling/backward.comp|DTYPE=0,1,2"
  OPENCL "pooling/prepare.cl|pool.def|DTYPE=0|MASKED=0,1" "pooling/forward.cl|pool.def|lanes.def|MASKED=0,1|WG_Y=8"
         "pooling/backward.cl|pool.def|spread.def|MASKED=0,1"
         "pooling/cpu_forward.cl|pool.def|cpu.def|MASKED=0,1"
         "pooling/cpu_backward.cl|pool.def|cpu_spread.def|MASKED=0,1")
