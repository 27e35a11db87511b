# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "cells/tile/forward.comp|STORAGE16=0,1" "cells/tile/backward.comp|STORAGE16=0,1"
          "cells/tile/project.comp|STORAGE16=0,1"
  OPENCL "cells/tile/forward.cl|tile.def|WG_X=16|WG_Y=4|DTYPE=0" "cells/tile/backward.cl|tile.def|WG_X=16|WG_Y=4|DTYPE=0"
         "cells/tile/project.cl|tile.def|WG_X=16|WG_Y=4|DTYPE=0")
