# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "recurrence/mma/forward.cl|mma.def|DTYPE=1,2|WG_X=256|RECUR_OUTPUTS=0,1|${TESSERA_NVIDIA_PTX}"
         "recurrence/mma/forward.cl|mma.def|DTYPE=2|WG_X=256|RECUR_OUTPUTS=0|RECUR_KEEPS=0,1|RECUR_GOES_BACK=1|${TESSERA_NVIDIA_PTX}"
         "recurrence/mma/forward.cl|mma.def|DTYPE=2|WG_X=256|RECUR_OUTPUTS=0|RECUR_KEEPS=1|${TESSERA_NVIDIA_PTX}"
         "recurrence/mma/delta_chunks.cl|delta.def|DTYPE=1,2|WG_X=128|${TESSERA_NVIDIA_PTX}"
         "recurrence/mma/delta_forward.cl|delta.def|DTYPE=1,2|WG_X=256|${TESSERA_NVIDIA_PTX}"
         "recurrence/mma/delta_states.cl|delta.def|DTYPE=1,2|WG_X=256|${TESSERA_NVIDIA_PTX}"
         "recurrence/mma/delta_gradients.cl|delta.def|DTYPE=1,2|WG_X=512|${TESSERA_NVIDIA_PTX}"
         "recurrence/mma/gradients.cl|gradients.def|DTYPE=2|WG_X=256|${TESSERA_NVIDIA_PTX}")
