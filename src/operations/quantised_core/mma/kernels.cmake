# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "quantised/mma/order.cl|hopper.def|DTYPE=1,2|WG_X=256|FORMAT=0,1|${TESSERA_NVIDIA_PTX}"
         "quantised/mma/hopper.cl|hopper.def|DTYPE=1,2|WG_X=640|FORMAT=0,1|${TESSERA_NVIDIA_PTX}"
         "quantised/mma/hopper.cl|hopper.def|DTYPE=1,2|WG_X=640|ROWS=4|X_BYTES=16384|ZEROS=1|GROUP=0|WARPGROUPS_N=1|WARPGROUPS_K=4|FORMAT=0,1|${TESSERA_NVIDIA_PTX}"
         "quantised/mma/product.cl|mma.def|DTYPE=1,2|WG_X=256|FORMAT=0,1|${TESSERA_NVIDIA_PTX}"
         "quantised/mma/product.cl|mma.def|DTYPE=1,2|WG_X=256|ROWS=64|INPUT_LOCAL=1|ZEROS=1|GROUP=1|FORMAT=0,1|${TESSERA_NVIDIA_PTX}"
         "quantised/mma/stream.cl|stream.def|DTYPE=1,2|WG_X=512|FORMAT=0,1|${TESSERA_NVIDIA_PTX}"
         "quantised/mma/stream.cl|stream.def|DTYPE=1,2|WG_X=512|ROWS=8|ZEROS=1|GROUP=0|FORMAT=0,1|${TESSERA_NVIDIA_PTX}")
