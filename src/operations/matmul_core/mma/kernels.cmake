# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "matmul/mma/product.cl|mma.def|DTYPE=0,1,2|WG_X=128|A_BY_TERMS=0,1|B_BY_TERMS=0,1|ALIGNED=0,1|${TESSERA_NVIDIA_PTX}")
