# SPDX-License-Identifier: Apache-2.0
tessera_add_kernels(
  SHADERS "attention/tile/forward.comp|DTYPE=0,1,2|POLICY=0,1|SUBGROUP=0,1"
          "attention/tile/forward.comp|DTYPE=0,1,2|POLICY=1|PAGED=1|SUBGROUP=0,1"
          "attention/tile/forward.comp|DTYPE=0,1,2|POLICY=1|LISTED=1|SUBGROUP=0,1"
          "attention/tile/forward.comp|DTYPE=0,1,2|POLICY=1|CODES=1|PAGED=0,1|SUBGROUP=0,1"
          "attention/tile/backward_keys.comp|DTYPE=0,1,2|POLICY=0,1"
          "attention/tile/backward_queries.comp|DTYPE=0,1,2|POLICY=0,1"
  OPENCL "attention/tile/forward.cl|forward.def|WG_X=64|POLICY=0,1"
         "attention/tile/forward.cl|forward.def|WG_X=64|POLICY=1|PAGED=1"
         "attention/tile/forward.cl|forward.def|WG_X=64|POLICY=1|LISTED=1"
         "attention/tile/forward.cl|forward.def|WG_X=64|POLICY=1|CODES=1|PAGED=0,1"
         "attention/tile/backward_keys.cl|backward.def|WG_X=64|POLICY=0,1"
         "attention/tile/backward_queries.cl|backward.def|WG_X=64|POLICY=0,1")
