# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "matmul/tile/product.comp|STORAGE16=0,1" "matmul/core/combine.comp|STORAGE16=0,1" "matmul/core/ones.comp"
          "matmul/core/sums.comp|STORAGE16=0,1"
  OPENCL "matmul/tile/product.cl|tile.def|WG_X=256" "matmul/core/combine.cl|WG_X=64" "matmul/core/ones.cl|WG_X=1"
         "matmul/core/sums.cl|../sums.def|WG_X=64")
