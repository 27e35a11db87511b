# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "recurrence/cooperative/states.comp|DTYPE=1,2|--target-env=vulkan1.3"
          "recurrence/cooperative/outputs.comp|DTYPE=1,2|--target-env=vulkan1.3"
          "recurrence/cooperative/gradients.comp|DTYPE=1,2|--target-env=vulkan1.3"
          "recurrence/cooperative/delta_chunks.comp|DTYPE=1,2|--target-env=vulkan1.3"
          "recurrence/cooperative/delta_forward.comp|DTYPE=1,2|--target-env=vulkan1.3"
          "recurrence/cooperative/delta_states.comp|DTYPE=1,2|--target-env=vulkan1.3"
          "recurrence/cooperative/delta_gradients.comp|DTYPE=1,2|--target-env=vulkan1.3"
          "recurrence/cooperative/carry.comp|DTYPE=1,2" "recurrence/cooperative/final.comp")
