# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(SHADERS "state_space/core/boundaries.comp" OPENCL "state_space/core/boundaries.cl|WG_X=64|DTYPE=0")
