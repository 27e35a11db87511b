# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "quantised/lanes/product.comp|STORAGE16=0,1")
