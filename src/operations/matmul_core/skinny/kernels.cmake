# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(SHADERS "matmul/skinny/product.comp|STORAGE16=0,1" OPENCL
                            "matmul/skinny/product.cl|skinny.def|WG_X=128|B_ORDER=0,1,2")
