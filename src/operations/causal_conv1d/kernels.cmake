# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "state_space/conv/forward.comp|STORAGE16=0,1" "state_space/conv/backward.comp|STORAGE16=0,1"
          "state_space/conv/combine.comp|STORAGE16=0,1" "state_space/conv/vectors.comp|STORAGE16=0,1"
  OPENCL "state_space/conv/forward.cl|columns.def|WG_X=64|DTYPE=0" "state_space/conv/backward.cl|columns.def|WG_X=64|DTYPE=0"
         "state_space/conv/combine.cl|WG_X=64|DTYPE=0" "state_space/conv/vectors.cl|vectors.def|WG_X=64|DTYPE=0")
