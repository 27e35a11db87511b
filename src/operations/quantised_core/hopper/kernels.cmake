# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "quantised/hopper/product.cl|hopper.def|DTYPE=1,2|WG_X=512|${TESSERA_NVIDIA_PTX}"
         "quantised/hopper/product.cl|hopper.def|DTYPE=1,2|WG_X=256|ROWS=16|ZEROS=1|GROUP=0|${TESSERA_NVIDIA_PTX}")
