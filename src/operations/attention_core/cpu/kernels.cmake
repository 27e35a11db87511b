# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "attention/cpu/forward.cl|forward.def|POLICY=0,1" "attention/cpu/forward.cl|forward.def|POLICY=1|PAGED=1"
         "attention/cpu/bf16_forward.cl|forward.def|DTYPE=2|POLICY=0,1|${TESSERA_X86_AVX512}"
         "attention/cpu/bf16_forward.cl|forward.def|DTYPE=2|POLICY=1|PAGED=1|${TESSERA_X86_AVX512}"
         "attention/cpu/decode.cl|decode.def|POLICY=0,1" "attention/cpu/decode.cl|decode.def|POLICY=1|PAGED=1"
         "attention/cpu/decode.cl|decode.def|POLICY=1|CODES=1|PAGED=0,1"
         "attention/cpu/backward.cl|backward.def|POLICY=0,1" "attention/cpu/backward_rows.cl|backward.def"
         "attention/cpu/bf16_backward.cl|backward.def|DTYPE=2|POLICY=0,1|${TESSERA_X86_AVX512}"
         "attention/cpu/bf16_backward_rows.cl|backward.def|DTYPE=2|${TESSERA_X86_AVX512}")
