// SPDX-License-Identifier: Apache-2.0
// What a work-group of the variant "tile" owns: the beginning of the kernels' bodies, which have
// RECUR_CLEAR(token), a block that stores 0 for a token of no sequence. Text for OpenCL C and GLSL.

// SPIR-V may not name a constant of 16 bits, which a plain 0 would become.
#define RECUR_ZERO SPACE(RECUR_SHARES)

const u32 lane = LOCAL_ID_X, part = LOCAL_ID_Y, item = part * TO_U32(WG_X) + lane;
const u32 tokens = ARGS(tokens), sequences = ARGS(sequences), heads = ARGS(heads);
const u32 tiles = (ARGS(value_dim) + RECUR_COLUMNS - 1u) / RECUR_COLUMNS;
const u32 units = tiles * heads * max(sequences, 1u);
const u32 group = GROUP_ID_Y * GROUP_COUNT_X + GROUP_ID_X;
const u32 unit = group % units, span = group / units;
const u32 tile = unit % tiles, head = unit / tiles % heads, sequence = unit / tiles / heads;
const u32 column = tile * RECUR_COLUMNS + 4u * lane;
const bool present = span < ARGS(spans);
u32 left = present && column < ARGS(value_dim) ? min(4u, ARGS(value_dim) - column) : 0u;

if (item == 0u) SPACE(RECUR_SHARES) = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
RECUR_BARRIER();

// The tokens [begin, end) of the sequence.
u32 begin = 0u, end = tokens, batch = sequence;
if (RECUR_HAS(RECUR_PACKED)) {
  const bool is_some = sequence < sequences;
  batch = 0u;
  begin = is_some ? TO_U32(LOAD_BOUNDARY(sequence)) : tokens;
  end = is_some ? TO_U32(LOAD_BOUNDARY(sequence + 1u)) : tokens;
  if (ARGS(first) == 0u && span == 0u) {
    // Rows of no sequence.
    const u32 before = sequence == 0u ? begin : 0u;
    const u32 behind = sequence + 1u >= sequences ? end : tokens;
    for (u32 token = part; token < before; token += WG_Y) RECUR_CLEAR(token)
    for (u32 token = behind + part; token < tokens; token += WG_Y) RECUR_CLEAR(token)
  }
}
if (sequence >= sequences || !present) {
  left = 0u;
  end = begin;
}

const u32 length = end - begin;
