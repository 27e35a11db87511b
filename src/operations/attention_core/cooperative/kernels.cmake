# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "attention/cooperative/backward.comp|DTYPE=1,2|OWN_KEYS=0,1|POLICY=0,1|REGISTERS=0|--target-env=vulkan1.3"
          "attention/cooperative/backward.comp|DTYPE=1,2|OWN_KEYS=0,1|POLICY=0|REGISTERS=1|--target-env=vulkan1.3"
          "attention/cooperative/decode.comp|DTYPE=1,2|POLICY=0,1|--target-env=vulkan1.3"
          "attention/cooperative/decode.comp|DTYPE=1,2|POLICY=1|PAGED=1|--target-env=vulkan1.3"
          "attention/cooperative/decode.comp|DTYPE=1,2|POLICY=1|CODES=1|PAGED=0,1|--target-env=vulkan1.3"
          "attention/cooperative/forward.comp|DTYPE=1,2|POLICY=0,1|REGISTERS=0|--target-env=vulkan1.3"
          "attention/cooperative/forward.comp|DTYPE=1,2|POLICY=1|PAGED=1|REGISTERS=0|--target-env=vulkan1.3"
          "attention/cooperative/forward.comp|DTYPE=1,2|POLICY=0|REGISTERS=1|--target-env=vulkan1.3")
