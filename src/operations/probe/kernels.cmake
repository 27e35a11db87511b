# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "probe/fma_peak.comp" "probe/copy.comp"
  OPENCL "probe/fma_peak.cl|DTYPE=0" "probe/copy.cl|DTYPE=0" "probe/read.cl|DTYPE=0"
         "probe/bf16_dot.cl|DTYPE=0|${TESSERA_X86_AVX512}")
