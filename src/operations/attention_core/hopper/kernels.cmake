# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "attention/hopper/forward.cl|forward.def|DTYPE=1,2|WG_X=384|BAND=0,7|POLICY=0,1|FEATURES=0,2175|${TESSERA_NVIDIA_PTX}"
         "attention/hopper/forward.cl|forward.def|DTYPE=1,2|WG_X=384|BAND=1|POLICY=1|PAGED=1|${TESSERA_NVIDIA_PTX}"
         "attention/hopper/forward_maps.cl|forward.def|DTYPE=1|${TESSERA_NVIDIA_PTX}"
         "attention/hopper/forward_maps.cl|forward.def|DTYPE=1|POLICY=1|PAGED=1|${TESSERA_NVIDIA_PTX}"
         "attention/hopper/backward.cl|backward.def|DTYPE=1,2|WG_X=384|BAND=0,3|${TESSERA_NVIDIA_PTX}"
         "attention/hopper/backward_maps.cl|backward.def|DTYPE=1|${TESSERA_NVIDIA_PTX}"
         "attention/hopper/backward_queries.cl|backward.def|DTYPE=1,2|WG_X=256|${TESSERA_NVIDIA_PTX}")
