# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "attention/mma/forward.cl|forward.def|DTYPE=0,1,2|WG_X=128|POLICY=0,1|${TESSERA_NVIDIA_PTX}"
         "attention/mma/forward.cl|forward.def|DTYPE=0,1,2|WG_X=128|POLICY=1|PAGED=1|${TESSERA_NVIDIA_PTX}"
         "attention/mma/decode.cl|decode.def|DTYPE=1,2|WG_X=128|POLICY=0,1|${TESSERA_NVIDIA_PTX}"
         "attention/mma/decode.cl|decode.def|DTYPE=1,2|WG_X=128|POLICY=1|PAGED=1|${TESSERA_NVIDIA_PTX}"
         "attention/mma/decode.cl|decode.def|DTYPE=1,2|WG_X=128|POLICY=1|CODES=1|PAGED=0,1|${TESSERA_NVIDIA_PTX}"
         "attention/mma/backward_keys.cl|backward.def|DTYPE=1|WG_X=128|POLICY=0,1|${TESSERA_NVIDIA_PTX}"
         "attention/mma/backward_queries.cl|backward.def|DTYPE=1|WG_X=128|POLICY=0,1|${TESSERA_NVIDIA_PTX}"
         "attention/mma/wide_backward_keys.cl|wide_backward.def|DTYPE=1|WG_X=256|POLICY=0,1|${TESSERA_NVIDIA_PTX}"
         "attention/mma/wide_backward_queries.cl|wide_backward.def|DTYPE=1|WG_X=256|POLICY=0,1|${TESSERA_NVIDIA_PTX}")
