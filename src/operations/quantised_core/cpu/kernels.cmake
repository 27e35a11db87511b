# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "quantised/cpu/product.cl|cpu.def|FORMAT=0,1,2,3|CENTRED=0,1"
         "quantised/cpu/product.cl|cpu.def|VECTOR_WIDTH=8|FORMAT=1,3|ROWS=1,4")
