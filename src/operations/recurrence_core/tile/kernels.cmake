# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "recurrence/tile/forward.comp|STORAGE16=0,1" "recurrence/tile/states.comp|STORAGE16=0,1"
          "recurrence/tile/gradients.comp|STORAGE16=0,1" "recurrence/tile/combine.comp|STORAGE16=0,1"
          "recurrence/tile/gamma.comp|STORAGE16=0,1" "recurrence/tile/spans.comp|STORAGE16=0,1"
          "recurrence/tile/carry.comp"
          "recurrence/tile/delta_forward.comp|STORAGE16=0,1" "recurrence/tile/delta_states.comp|STORAGE16=0,1"
          "recurrence/tile/delta_gradients.comp|STORAGE16=0,1"
  OPENCL "recurrence/tile/forward.cl|tile.def|WG_X=8|WG_Y=4|DTYPE=0" "recurrence/tile/states.cl|tile.def|WG_X=8|WG_Y=4|DTYPE=0"
         "recurrence/tile/gradients.cl|tile.def|WG_X=8|WG_Y=4|DTYPE=0" "recurrence/tile/combine.cl|WG_X=32|DTYPE=0"
         "recurrence/tile/gamma.cl|WG_X=64|DTYPE=0" "recurrence/tile/spans.cl|tile.def|WG_X=8|WG_Y=4|DTYPE=0"
         "recurrence/tile/carry.cl|WG_X=64|DTYPE=0"
         "recurrence/tile/delta_forward.cl|tile.def|WG_X=8|WG_Y=4|DTYPE=0" "recurrence/tile/delta_states.cl|tile.def|WG_X=8|WG_Y=4|DTYPE=0"
         "recurrence/tile/delta_gradients.cl|tile.def|WG_X=8|WG_Y=4|DTYPE=0")
