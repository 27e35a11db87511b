# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(SHADERS "recurrence/scan/scan.comp|STORAGE16=0,1" OPENCL "recurrence/scan/scan.cl|WG_X=64|DTYPE=0")
