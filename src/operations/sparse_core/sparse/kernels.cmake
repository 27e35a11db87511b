# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "matmul/sparse/list.comp" "matmul/sparse/product.comp|STORAGE16=0,1"
  OPENCL "matmul/sparse/list.cl|elements.def|WG_X=64" "matmul/sparse/product.cl|elements.def|WG_X=64")
