# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "state_space/scan/spans.comp|STORAGE16=0,1" "state_space/scan/carry.comp|STORAGE16=0,1"
          "state_space/scan/forward.comp|STORAGE16=0,1" "state_space/scan/back_spans.comp|STORAGE16=0,1"
          "state_space/scan/gradients.comp|STORAGE16=0,1" "state_space/scan/combine.comp|STORAGE16=0,1"
  OPENCL "state_space/scan/spans.cl|tile.def|WG_X=32|DTYPE=0" "state_space/scan/carry.cl|tile.def|WG_X=32|DTYPE=0"
         "state_space/scan/forward.cl|tile.def|WG_X=32|WG_Y=2|DTYPE=0" "state_space/scan/back_spans.cl|backward.def|WG_X=32|DTYPE=0"
         "state_space/scan/gradients.cl|backward.def|WG_X=32|DTYPE=0" "state_space/scan/combine.cl|WG_X=64|DTYPE=0")
