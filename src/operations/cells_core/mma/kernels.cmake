# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  OPENCL "cells/mma/forward.cl|mma.def|DTYPE=1,2|WG_X=256|CELL=0,1,2|ALONE=0,1|${TESSERA_NVIDIA_PTX}"
         "cells/mma/backward.cl|mma.def|DTYPE=1|WG_X=256|CELL=0,1,2|ALONE=0,1|SIXTEENS=4|${TESSERA_NVIDIA_PTX}"
         "cells/mma/backward.cl|mma.def|DTYPE=2|WG_X=256|BACK_UNITS=32|HELD=2|SIXTEENS=8|${TESSERA_NVIDIA_PTX}")
