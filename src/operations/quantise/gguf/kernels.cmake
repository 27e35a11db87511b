# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "quantised/gguf/quantise.comp|STORAGE16=0,1" "quantised/gguf/dequantise.comp|STORAGE16=0,1"
  OPENCL "quantised/gguf/quantise.cl|gguf.def|HALF_BYTES=0,1|WG_X=64"
         "quantised/gguf/dequantise.cl|gguf.def|HALF_BYTES=0,1|WG_X=64")
