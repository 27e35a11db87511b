// SPDX-License-Identifier: Apache-2.0
// The body of moe/ffn/gate.cl and moe/ffn/gate.comp: silu(gate) up, or its gradients. Text for
// OpenCL C and GLSL. LOAD(at, count) and STORE(x, at, count) are of up to four elements.

const u32 inner = ARGS(inner), fours = (inner + 3u) / 4u, units = ARGS(rows) * fours;
for (u32 unit = GLOBAL_ID; unit < units; unit += GLOBAL_COUNT) {
  const u32 row = unit / fours, column = unit % fours * 4u, count = min(inner - column, 4u);
  const u32 of_gate = ARGS(gate_up) + row * 2u * inner + column, of_up = of_gate + inner;
  const u32 of_row = row * inner + column;
  const FLOAT4 gate = LOAD(of_gate, count), up = LOAD(of_up, count);
  const FLOAT4 one = MAKE_FLOAT4(1.0f, 1.0f, 1.0f, 1.0f);
  const FLOAT4 sigmoid = one / (one + exp(-gate));
  if (BACKWARD == 0) {
    STORE(gate * sigmoid * up, ARGS(gated) + of_row, count);
  } else {
    const FLOAT4 gradient = LOAD(ARGS(gradient) + of_row, count);
    STORE(gradient * up * (sigmoid + gate * sigmoid * (one - sigmoid)), of_gate, count);
    STORE(gradient * gate * sigmoid, of_up, count);
  }
}
