// SPDX-License-Identifier: Apache-2.0
// The body of moe/ffn/gate.cl and moe/ffn/gate.comp: act(gate) up, or its gradients; without a gate
// act(up). Text for OpenCL C and GLSL. LOAD(at, count) and STORE(x, at, count) are of up to four
// elements.

const u32 inner = ARGS(inner), fours = (inner + 3u) / 4u, units = ARGS(rows) * fours;
const u32 kind = ARGS(activation);
const bool is_gated = ARGS(is_gated) != 0u;
const u32 width = is_gated ? 2u * inner : inner;
for (u32 unit = GLOBAL_ID; unit < units; unit += GLOBAL_COUNT) {
  const u32 row = unit / fours, column = unit % fours * 4u, count = min(inner - column, 4u);
  const u32 of_gate = ARGS(gate_up) + row * width + column, of_up = of_gate + inner;
  const u32 of_row = row * inner + column;
  const FLOAT4 gate = LOAD(of_gate, count);
  FLOAT4 up = MAKE_FLOAT4(1.0f, 1.0f, 1.0f, 1.0f);
  if (is_gated) up = LOAD(of_up, count);
  if (BACKWARD == 0) {
    STORE(matmul_activation(kind, gate) * up, ARGS(gated) + of_row, count);
  } else {
    const FLOAT4 gradient = LOAD(ARGS(gradient) + of_row, count);
    STORE(gradient * up * matmul_slope(kind, gate), of_gate, count);
    if (is_gated) {
      STORE(gradient * matmul_activation(kind, gate), of_up, count);
    }
  }
}
