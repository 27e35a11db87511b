# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "quantised/mma/product.cl|mma.def|DTYPE=1,2|WG_X=256|FORMAT=0,1|${TESSERA_NVIDIA_PTX}"
         "quantised/mma/product.cl|mma.def|DTYPE=1,2|WG_X=256|ROWS=64|INPUT_LOCAL=1|ZEROS=1|GROUP=1|FORMAT=0,1|${TESSERA_NVIDIA_PTX}"
         "quantised/mma/stream.cl|stream.def|DTYPE=1,2|WG_X=512|FORMAT=0,1|${TESSERA_NVIDIA_PTX}"
         "quantised/mma/stream.cl|stream.def|DTYPE=1,2|WG_X=512|STAGES=5|FORMAT=0,1|${TESSERA_NVIDIA_PTX}"
         "quantised/mma/stream.cl|stream.def|DTYPE=1,2|WG_X=512|ROWS=8|ZEROS=1|GROUP=0|FORMAT=0,1|${TESSERA_NVIDIA_PTX}")
