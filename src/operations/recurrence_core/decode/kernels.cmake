# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(OPENCL "recurrence/decode/decode.cl|decode.def|WG_X=32|WG_Y=16|DTYPE=0")
