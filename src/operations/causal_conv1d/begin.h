// SPDX-License-Identifier: Apache-2.0
// The beginning of forward.h, vectors.h and backward.h: what an item owns, CONV_CHANNELS channels
// of a unit. Text for OpenCL C and GLSL.

const u32 tokens = ARGS(tokens), vectors = (ARGS(dim) + CONV_CHANNELS - 1u) / CONV_CHANNELS;
const u32 blocks = (vectors + TO_U32(WG_X) - 1u) / TO_U32(WG_X);
const u32 group = GROUP_ID_Y * GROUP_COUNT_X + GROUP_ID_X;
const u32 unit = group / blocks, vector = group % blocks * TO_U32(WG_X) + LOCAL_ID_X;
const u32 channel = CONV_CHANNELS * vector, chunks = ARGS(batches) * ARGS(chunks);
const bool present = vector < vectors && unit < CONV_UNITS;
const bool is_state = unit >= chunks;
u32 batch = is_state ? unit - chunks : unit / max(ARGS(chunks), 1u);
u32 sequence = batch, begin = 0u, end = tokens;
bool held = true;
if (CONV_HAS(CONV_PACKED)) {
  batch = 0u;
  if (is_state && present) {
    begin = TO_U32(ORDERED(sequence));
    end = TO_U32(ORDERED(sequence + 1u));
  }
}
// SPIR-V may not name a constant of 16 bits, which a plain 0 would become.
const float nothing = TO_FLOAT(ARGS(features) >> 31);
const FLOAT4 zero = MAKE_FLOAT4(nothing, nothing, nothing, nothing);
