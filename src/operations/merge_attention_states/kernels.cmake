# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "attention_states/merge.comp|DTYPE=0,1,2" "attention_states/backward.comp|DTYPE=0,1,2"
  OPENCL "attention_states/merge.cl|tunables.def|WG_X=64" "attention_states/backward.cl|tunables.def|WG_X=64")
