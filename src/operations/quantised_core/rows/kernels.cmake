# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "quantised/rows/product.comp|STORAGE16=0,1"
  OPENCL "quantised/rows/product.cl|rows.def|FORMAT=0,1,2,3|WG_X=64")
