# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(OPENCL "matmul/grouped_cpu/product.cl|cpu.def|RAGGED=0,1,2")
