# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(OPENCL "matmul/cpu/product.cl|cpu.def" "matmul/cpu/pack.cl|cpu.def" "matmul/cpu/rows.cl|cpu.def"
                           "matmul/cpu/columns.cl|cpu.def")
