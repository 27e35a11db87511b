// SPDX-License-Identifier: Apache-2.0
// The body of cells/core/begin.cl and begin.comp. Text for OpenCL C and GLSL.

const u32 first = GROUP_ID_X * TO_U32(WG_X) + LOCAL_ID_X, pace = GROUP_COUNT_X * TO_U32(WG_X);
const u32 hidden = ARGS(hidden), batch = ARGS(batch), terms = ARGS(terms);
const u32 panel_terms = terms * ARGS(vectors) * TO_U32(CELL_LANES);
const u32 weights = ARGS(directions) * ARGS(panels) * panel_terms;
for (u32 i = first * ARGS(lanes); i < weights; i += pace * ARGS(lanes)) {
  const u32 vector = i % panel_terms / TO_U32(CELL_LANES);
  const u32 v = vector / (ARGS(at_once) * terms) * ARGS(at_once) + vector % ARGS(at_once);
  const u32 term = vector / ARGS(at_once) % terms;
  const u32 panel = i / panel_terms % ARGS(panels), direction = i / panel_terms / ARGS(panels);
  u32 unit = panel * TO_U32(CELL_LANES) + i % TO_U32(CELL_LANES);
  if (CELL_HAS(CELL_WIDE)) unit += (panel * (ARGS(vectors) - 1u) + v) * TO_U32(CELL_LANES);
  for (u32 lane = 0u; lane < ARGS(lanes); ++lane) {
    float weight = 0.0f;
    if (unit + lane < ARGS(units) && term < ARGS(depth))
      weight = LOAD_WEIGHT(ARGS(weight_offset) + direction * ARGS(weight_direction) +
                           v * ARGS(weight_gate) + (unit + lane) * ARGS(weight_unit) +
                           term * ARGS(weight_term));
    SCRATCH(ARGS(weights) + i + lane) = weight;
  }
}

const u32 rows = ARGS(directions) * ARGS(gates) * hidden;
if (!CELL_HAS(CELL_BACKWARD)) {
  for (u32 i = first; i < rows; i += pace) {
    const u32 direction = i / (ARGS(gates) * hidden), row = i % (ARGS(gates) * hidden);
    float bias = 0.0f;
    if (CELL_HAS(CELL_HAS_BIAS))
      bias = LOAD_BIAS(ARGS(bias_offset) + direction * ARGS(bias_direction) + row * ARGS(bias_row));
    SCRATCH(ARGS(bias) + i) = bias;
  }
}
if (CELL_HAS(CELL_FIRST)) {
  for (u32 i = first; i < batch; i += pace) {
    int length = TO_INT(ARGS(tokens));
    if (CELL_HAS(CELL_HAS_LENGTHS)) {
      const int given = LOAD_LENGTH(ARGS(lengths_offset) + i * ARGS(lengths_stride));
      if (given < 0 || given > length) RAISE(0u, i);
      length = clamp(given, 0, length);
    }
    SCRATCH(ARGS(lengths) + i) = TO_FLOAT(length);
  }
}

// Forward h0, and what the first step writes; back no gradients yet.
const u32 states = ARGS(directions) * batch * terms;
for (u32 i = first; i < 2u * states; i += pace) {
  const u32 unit = i % terms, entry = i / terms % batch, direction = i / terms / batch;
  float h = 0.0f;
  if (CELL_HAS(CELL_HAS_H) && !CELL_HAS(CELL_BACKWARD) && i < states && unit < ARGS(outputs))
    h = LOAD_H(ARGS(h_offset) + direction * ARGS(h_direction) + entry * ARGS(h_batch) +
               unit * ARGS(h_unit));
  SCRATCH(ARGS(state) + i) = h;
}
for (u32 i = first; i < ARGS(directions) * batch * hidden; i += pace) {
  const u32 unit = i % hidden, entry = i / hidden % batch, direction = i / hidden / batch;
  float c = 0.0f;
  if (CELL_HAS(CELL_HAS_C))
    c = LOAD_C(ARGS(c_offset) + direction * ARGS(c_direction) + entry * ARGS(c_batch) +
               unit * ARGS(c_unit));
  SCRATCH(ARGS(cell) + i) = c;
}
if (CELL_HAS(CELL_BACKWARD)) {
  const u32 outputs = ARGS(outputs);
  for (u32 i = first; i < ARGS(directions) * batch * outputs; i += pace) {
    const u32 unit = i % outputs, entry = i / outputs % batch, direction = i / outputs / batch;
    float h = 0.0f;
    if (CELL_HAS(CELL_HAS_H))
      h = LOAD_H(ARGS(h_offset) + direction * ARGS(h_direction) + entry * ARGS(h_batch) +
                 unit * ARGS(h_unit));
    SCRATCH(ARGS(carry) + i) = h;
  }
}

for (u32 i = first; i < ARGS(zero_count); i += pace) SCRATCH(ARGS(zeros) + i) = 0.0f;

if (CELL_HAS(CELL_CLEANS)) {
  const u32 inputs = ARGS(inputs), tokens = ARGS(tokens);
  for (u32 i = first; i < batch * tokens * inputs; i += pace) {
    const u32 feature = i % inputs, token = i / inputs % tokens, entry = i / inputs / tokens;
    int length = TO_INT(tokens);
    if (CELL_HAS(CELL_HAS_LENGTHS))
      length = LOAD_LENGTH(ARGS(lengths_offset) + entry * ARGS(lengths_stride));
    float x = 0.0f;
    if (TO_INT(token) < length)
      x = LOAD_INPUT(ARGS(input_offset) + entry * ARGS(input_batch) + token * ARGS(input_token) +
                     feature * ARGS(input_feature));
    STORE_CLEAN(x, ARGS(clean) + i);
  }
}
