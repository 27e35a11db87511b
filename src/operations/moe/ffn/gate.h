// SPDX-License-Identifier: Apache-2.0
// The body of moe/ffn/gate.cl and moe/ffn/gate.comp: act(gate) up, or its gradients; without a gate
// act(up). Text for OpenCL C and GLSL. LOAD(at, count) and STORE(x, at, count) are of up to four
// elements.

const u32 inner = ARGS(inner), eights = (inner + 7u) / 8u, units = ARGS(rows) * eights;
const u32 kind = ARGS(activation);
const bool is_gated = ARGS(is_gated) != 0u;
const u32 width = is_gated ? 2u * inner : inner;
for (u32 unit = GLOBAL_ID; unit < units; unit += GLOBAL_COUNT) {
  const u32 row = unit / eights, first = unit % eights * 8u;
  const u32 of_row = row * inner, of_gate = ARGS(gate_up) + row * width, of_up = of_gate + inner;
  FLOAT4 gate[2], up[2], gradient[2];
  UNROLL for (u32 i = 0u; i < 2u; ++i) {
    const u32 column = first + 4u * i, count = min(inner - min(column, inner), 4u);
    gate[i] = up[i] = gradient[i] = MAKE_FLOAT4(1.0f, 1.0f, 1.0f, 1.0f);
    if (count == 0u) continue;
    gate[i] = LOAD(of_gate + column, count);
    if (is_gated) up[i] = LOAD(of_up + column, count);
    if (BACKWARD != 0) gradient[i] = LOAD(ARGS(gradient) + of_row + column, count);
  }
  UNROLL for (u32 i = 0u; i < 2u; ++i) {
    const u32 column = first + 4u * i, count = min(inner - min(column, inner), 4u);
    if (count == 0u) continue;
    const FLOAT4 act = matmul_activation(kind, gate[i]);
    if (BACKWARD == 0) {
      STORE(act * up[i], ARGS(gated) + of_row + column, count);
    } else {
      STORE(gradient[i] * up[i] * matmul_slope(kind, gate[i]), of_gate + column, count);
      if (is_gated) {
        STORE(gradient[i] * act, of_up + column, count);
      }
    }
  }
}
