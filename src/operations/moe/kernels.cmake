# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "moe/route/select.comp|DTYPE=0,1,2" "moe/route/count.comp" "moe/route/scan.comp" "moe/route/place.comp"
          "moe/route/weigh.comp" "moe/route/sums.comp|DTYPE=0,1,2" "moe/route/losses.comp"
          "moe/route/backward.comp|DTYPE=0,1,2" "moe/rows/clear.comp" "moe/rows/map.comp"
          "moe/rows/spread.comp|DTYPE=0,1,2" "moe/rows/gather.comp|DTYPE=0,1,2" "moe/rows/dots.comp|DTYPE=0,1,2"
          "moe/ffn/sizes.comp" "moe/ffn/gate.comp|STORAGE16=0,1"
  OPENCL "moe/route/select.cl|route/route.def|WG_X=64" "moe/route/count.cl|route/route.def|WG_X=64|DTYPE=0"
         "moe/route/scan.cl|route/route.def|WG_X=64|DTYPE=0" "moe/route/place.cl|route/route.def|WG_X=64|DTYPE=0"
         "moe/route/weigh.cl|route/route.def|WG_X=64|DTYPE=0" "moe/route/sums.cl|route/route.def|WG_X=64"
         "moe/route/losses.cl|route/route.def|WG_X=64|DTYPE=0" "moe/route/backward.cl|route/route.def|WG_X=64"
         "moe/rows/clear.cl|rows/rows.def|WG_X=64|DTYPE=0" "moe/rows/map.cl|rows/rows.def|WG_X=64|DTYPE=0"
         "moe/rows/spread.cl|rows/rows.def|WG_X=64" "moe/rows/gather.cl|rows/rows.def|WG_X=64"
         "moe/rows/dots.cl|rows/rows.def|WG_X=64" "moe/ffn/sizes.cl|ffn/ffn.def|WG_X=64"
         "moe/ffn/gate.cl|ffn/ffn.def|STORAGE16=0,1|BACKWARD=0,1|WG_X=64")
