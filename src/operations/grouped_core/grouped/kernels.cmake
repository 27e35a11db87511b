# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "matmul/grouped/list.comp" "matmul/grouped/product.comp|STORAGE16=0,1"
  OPENCL "matmul/grouped/list.cl|WG_X=64" "matmul/grouped/product.cl|tile.def|RAGGED=0,1,2|WG_X=256")
