# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(SHADERS "state_space/vectors/conv.comp|STORAGE16=0,1" OPENCL "state_space/vectors/conv.cl|vectors.def|WG_X=64")
