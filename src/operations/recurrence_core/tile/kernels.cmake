# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(SHADERS "recurrence/tile/forward.comp|STORAGE16=0,1" OPENCL "recurrence/tile/forward.cl|tile.def|WG_X=8|WG_Y=4|DTYPE=0")
