// SPDX-License-Identifier: Apache-2.0
// The loop over blocks that share a scale: the beginning of quantise.h and dequantise.h. Text for
// OpenCL C and GLSL. LANES items own a block at a time and take its floats by eights along rows.

// Names row and column of eight `i`, and how many elements are left from there.
#define CODES_EIGHT(i)                                                \
  const u32 below = is_flat ? 0u : (i) / eights;                      \
  const u32 row = row0 + below, in_block = ((i)-below * eights) * 8u; \
  const u32 column = column0 + in_block, left = min(width - in_block, 8u);

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), of_call = TO_U32(PER_CALL);
const u32 features = of_call != 0u ? TO_U32(FEATURES) : ARGS(features);
const u32 type = of_call != 0u ? TO_U32(TYPE) : ARGS(type);
const u32 floats_type = of_call != 0u ? TO_U32(FLOATS_TYPE) : ARGS(floats_type);
const bool is_flat = (features & CODES_FLAT) != 0u;
const bool aligned = (features & CODES_ALIGNED) != 0u, is_packed = codes_are_packed(type);
const bool is_dynamic = (features & CODES_DYNAMIC) != 0u,
           has_zeros = (features & CODES_ZEROS) != 0u;
for (u32 first = GROUP_ID * lines; first < ARGS(blocks); first += GROUP_COUNT * lines) {
  const u32 block = first + line, rest = block / ARGS(groups);
  const bool counts = block < ARGS(blocks);
  const u32 batch = rest / ARGS(talls), tall = rest - batch * ARGS(talls);
  const u32 group = block - rest * ARGS(groups);
  const u32 row0 = tall * ARGS(group_rows), column0 = group * ARGS(group);
  const u32 width = counts ? min(ARGS(columns) - column0, ARGS(group)) : 0u;
  const u32 eights = (width + 7u) / 8u, steps = eights * min(ARGS(rows) - row0, ARGS(group_rows));
