# SPDX-License-Identifier: Apache-2.0
# FEATURES 2097156: halves of silu and up.
tessera_add_kernels(
  OPENCL "matmul/hopper/grouped.cl|hopper.def|DTYPE=1,2|WG_X=384|RAGGED=0,1|RESULT=0|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/grouped.cl|hopper.def|DTYPE=2|WG_X=384|RAGGED=0,1|RESULT=2,3|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/grouped.cl|hopper.def|DTYPE=2|WG_X=384|RESULT=2|B_BY_TERMS=0,1|FEATURES=2097156|${TESSERA_NVIDIA_PTX}"
         "matmul/hopper/grouped_list.cl|hopper.def|DTYPE=1,2|WG_X=128|RAGGED=0,1|${TESSERA_NVIDIA_PTX}")
