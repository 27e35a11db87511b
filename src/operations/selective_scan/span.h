// SPDX-License-Identifier: Apache-2.0
// Behind begin.h, where a unit is a span of a batch entry: its tokens. Text for OpenCL C and GLSL.

const u32 spans = max(ARGS(spans), 1u), span = unit % spans, batch = unit / spans;
const u32 tokens = ARGS(tokens), first = span * ARGS(span);
const bool present = column < channels && batch < ARGS(batches);
const u32 last = batch < ARGS(batches) ? min(first + ARGS(span), tokens) : first;
u32 sequence = batch, begin = 0u, end = tokens;
bool held = true, anew = true;
float bias = 0.0f;
if (present && SCAN_HAS(SCAN_BIAS))
  bias = LOAD_STEP_BIAS(ARGS(bias_offset) + channel * ARGS(bias_stride));
