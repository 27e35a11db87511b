# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(OPENCL "quantised/cpu/product.cl|cpu.def|FORMAT=0,1,2,3|CENTRED=0,1")
