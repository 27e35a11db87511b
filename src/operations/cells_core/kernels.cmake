# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(SHADERS "cells/core/begin.comp|STORAGE16=0,1" OPENCL "cells/core/begin.cl|WG_X=64|DTYPE=0")
