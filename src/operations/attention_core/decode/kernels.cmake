# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "attention/decode/decode.cl|decode.def|WG_X=64|POLICY=0,1|PTX=0,1|${TESSERA_NVIDIA_PTX}"
         "attention/decode/decode.cl|decode.def|WG_X=64|POLICY=1|PAGED=1|PTX=0,1|${TESSERA_NVIDIA_PTX}"
         "attention/decode/decode.cl|decode.def|WG_X=64|POLICY=1|CODES=1|PAGED=0,1|PTX=0,1|${TESSERA_NVIDIA_PTX}")
