# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "kv_cache/tables/places.comp" "kv_cache/tables/last.comp" "kv_cache/tables/pairs.comp" "kv_cache/tables/few.comp"
          "kv_cache/rows/copy.comp" "kv_cache/rows/few.comp"
          "kv_cache/rows/quantise.comp|DTYPE=0,1,2" "kv_cache/rows/dequantise.comp|DTYPE=0,1,2" "kv_cache/rows/scales.comp"
  OPENCL "kv_cache/tables/places.cl|WG_X=64|DTYPE=0" "kv_cache/tables/last.cl|WG_X=64|DTYPE=0"
         "kv_cache/tables/pairs.cl|WG_X=64|DTYPE=0" "kv_cache/tables/few.cl|WG_X=128|DTYPE=0"
         "kv_cache/rows/copy.cl|rows/copy.def|WG_X=64|DTYPE=0" "kv_cache/rows/few.cl|rows/copy.def|WG_X=64|DTYPE=0"
         "kv_cache/rows/quantise.cl|rows/codes.def|WG_X=64" "kv_cache/rows/dequantise.cl|rows/codes.def|WG_X=64"
         "kv_cache/cpu/quantise.cl|cpu/codes.def" "kv_cache/cpu/dequantise.cl|cpu/codes.def"
         "kv_cache/rows/scales.cl|rows/codes.def|WG_X=64|DTYPE=0")
