# SPDX-License-Identifier: Apache-2.0
# FEATURES 34: bias and gelu, 140: pairs of silu with a gate, 260: silu and a residual, 98304: scales of rows and columns.
tessera_add_kernels(
  OPENCL "matmul/hopper/split.cl|hopper.def|DTYPE=0|A_TYPE=0,1|B_TYPE=0,1,2|WG_X=256|A_BY_TERMS=0,1|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/product.cl|hopper.def|DTYPE=0|A_TYPE=0,1,2|B_TYPE=0,1|WG_X=384|A_BY_TERMS=0,1|BLOCK_N=128|STAGES=4|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/product.cl|hopper.def|DTYPE=1,2|WG_X=384|A_BY_TERMS=0,1|RESULT=0|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/product.cl|hopper.def|DTYPE=1|WG_X=384|RESULT=1,2|FEATURES=0,34,140,260|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/product.cl|hopper.def|DTYPE=3|WG_X=384|RESULT=0,3|FEATURES=0|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/product.cl|hopper.def|DTYPE=3|WG_X=384|RESULT=2|FEATURES=98304|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/product.cl|hopper.def|DTYPE=7,8|B_TYPE=7,8|WG_X=384|RESULT=0|FEATURES=0|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/product.cl|hopper.def|DTYPE=7|B_TYPE=7|WG_X=384|RESULT=2|FEATURES=98304|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/product.cl|hopper.def|DTYPE=7|B_TYPE=7|BLOCKS=1,3|WG_X=512|BLOCK_N=128|STAGES=4|RESULT=0,2|${TESSERA_NVIDIA_PTX}")
