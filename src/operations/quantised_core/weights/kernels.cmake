# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "quantised/weights/expand.comp|STORAGE16=0,1"
  OPENCL "quantised/weights/expand.cl|WG_X=64")
