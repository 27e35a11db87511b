# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "matmul/hopper/sparse_list.cl|hopper.def|WG_X=256"
         "matmul/hopper/sparse.cl|hopper.def|DTYPE=1|WG_X=384|RESULT=1|TURNED_RESULT=0,1|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/sparse.cl|hopper.def|DTYPE=2|WG_X=384|RESULT=2|TURNED_RESULT=0,1|${TESSERA_NVIDIA_PTX}")
