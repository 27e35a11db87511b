# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "matmul/hopper/product.cl|hopper.def|DTYPE=1,2|WG_X=384|A_BY_TERMS=0,1|PLAIN=0,1|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/maps.cl|hopper.def|DTYPE=1|WG_X=32|${TESSERA_NVIDIA_PTX}")
