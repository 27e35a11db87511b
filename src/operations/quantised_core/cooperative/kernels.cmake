# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "quantised/cooperative/product.comp|DTYPE=1,2|--target-env=vulkan1.3"
          "quantised/cooperative/stream.comp|DTYPE=1|--target-env=vulkan1.3")
