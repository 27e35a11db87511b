# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(OPENCL "cells/cpu/forward.cl|cpu.def|DTYPE=0" "cells/cpu/backward.cl|cpu.def|DTYPE=0"
                           "cells/cpu/project.cl|cpu.def|DTYPE=0")
