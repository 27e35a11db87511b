# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "quantised/codes/quantise.comp|STORAGE16=0,1" "quantised/codes/dequantise.comp|STORAGE16=0,1"
  OPENCL "quantised/codes/quantise.cl|codes.def|WG_X=64" "quantised/codes/dequantise.cl|codes.def|WG_X=64")
