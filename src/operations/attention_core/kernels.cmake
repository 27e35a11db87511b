# SPDX-License-Identifier: Apache-2.0
# The passes around every way to compute.
tessera_add_kernels(
  SHADERS "attention/core/rows.comp" "attention/core/pages.comp" "attention/core/spans.comp" "attention/core/distribution.comp" "attention/core/position_bias.comp|STORAGE16=0,1" "attention/core/work.comp" "attention/core/map.comp|DTYPE=0,1,2" "attention/core/weights.comp|DTYPE=0,1,2"
          "attention/core/combine.comp|DTYPE=0,1,2|POLICY=0,1" "attention/core/delta.comp|DTYPE=0,1,2"
          "attention/core/peaks.comp|DTYPE=0,1,2" "attention/core/bias_gradient.comp|DTYPE=0,1,2"
          "attention/core/sink_gradient.comp|DTYPE=0,1,2"
  OPENCL "attention/core/rows.cl|WG_X=64" "attention/core/pages.cl|WG_X=64" "attention/core/spans.cl|WG_X=64" "attention/core/distribution.cl|WG_X=64" "attention/core/position_bias.cl|WG_X=64" "attention/core/work.cl|WG_X=64" "attention/core/map.cl|WG_X=64" "attention/core/weights.cl|WG_X=64"
         "attention/core/combine.cl|tile/forward.def|WG_X=64|POLICY=0,1"
         "attention/core/delta.cl|tile/backward.def|WG_X=64" "attention/core/peaks.cl|tile/backward.def|WG_X=64"
         "attention/core/bias_gradient.cl|WG_X=64" "attention/core/sink_gradient.cl|WG_X=64")
