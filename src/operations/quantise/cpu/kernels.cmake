# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(OPENCL "quantised/codes_cpu/quantise.cl|codes.def" "quantised/codes_cpu/dequantise.cl|codes.def")
