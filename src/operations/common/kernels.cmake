# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(SHADERS "common/boundaries.comp" OPENCL "common/boundaries.cl|WG_X=128|DTYPE=0")
