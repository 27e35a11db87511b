# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "attention/decode/decode.comp|DTYPE=0,1,2|POLICY=0,1"
          "attention/decode/decode.comp|DTYPE=0,1,2|POLICY=1|PAGED=1"
          "attention/decode/decode.comp|DTYPE=0,1,2|POLICY=1|CODES=1|PAGED=0,1"
  OPENCL "attention/decode/decode.cl|decode.def|WG_X=64|POLICY=0,1|PTX=0,1|${TESSERA_NVIDIA_PTX}"
         "attention/decode/decode.cl|decode.def|WG_X=64|POLICY=1|PAGED=1|PTX=0,1|${TESSERA_NVIDIA_PTX}"
         "attention/decode/decode.cl|decode.def|WG_X=64|POLICY=1|CODES=1|PAGED=0,1|PTX=0,1|${TESSERA_NVIDIA_PTX}")
