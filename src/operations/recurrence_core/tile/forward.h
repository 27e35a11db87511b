// SPDX-License-Identifier: Apache-2.0
// The body of recurrence/tile/forward.cl and forward.comp. Text for OpenCL C and GLSL.

const u32 lane = LOCAL_ID_X, part = LOCAL_ID_Y, item = part * TO_U32(WG_X) + lane;
const u32 tokens = ARGS(tokens), sequences = ARGS(sequences), heads = ARGS(heads);
const u32 tiles = (ARGS(value_dim) + RECUR_COLUMNS - 1u) / RECUR_COLUMNS;
const u32 unit = GROUP_ID_Y * GROUP_COUNT_X + GROUP_ID_X;
const u32 tile = unit % tiles, head = unit / tiles % heads, sequence = unit / tiles / heads;
const u32 column = tile * RECUR_COLUMNS + 4u * lane;
u32 left = sequence < max(sequences, 1u) && column < ARGS(value_dim)
               ? min(4u, ARGS(value_dim) - column)
               : 0u;

// The tokens [begin, end) of the sequence. No barrier stands in a condition, which PoCL 3.1 takes
// amiss.
u32 begin = 0u, end = tokens, batch = sequence;
int low = 0, high = 0;
if (RECUR_HAS(RECUR_PACKED)) {
  for (u32 i = item; i <= min(sequence + 1u, sequences); i += RECUR_ITEMS) {
    const int boundary = clamp(LOAD_BOUNDARY(i), 0, TO_INT(tokens));
    high = max(high, boundary);
    if (i <= sequence) low = max(low, boundary);
  }
}
BOUNDS(item) = low;
BOUNDS(RECUR_ITEMS + item) = high;
if (item == 0u) SPACE(RECUR_SHARES) = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
RECUR_BARRIER();
if (RECUR_HAS(RECUR_PACKED)) {
  for (u32 i = 0u; i < RECUR_ITEMS; ++i) {
    low = max(low, BOUNDS(i));
    high = max(high, BOUNDS(RECUR_ITEMS + i));
  }
  batch = 0u;
  begin = TO_U32(low);
  end = TO_U32(high);
  if (sequence >= sequences) begin = end = tokens;
  if (ARGS(first) == 0u && left > 0u) {
    // Rows of no sequence. SPIR-V may not name a constant of 16 bits, which a plain 0 would become.
    const FLOAT4 zero = SPACE(RECUR_SHARES);
    const u32 before = sequence == 0u ? begin : 0u;
    const u32 behind = sequence + 1u >= sequences ? end : tokens;
    for (u32 token = part; token < before; token += WG_Y)
      STORE_OUTPUT(zero, RECUR_ROW(result, token) + column, left);
    for (u32 token = behind + part; token < tokens; token += WG_Y)
      STORE_OUTPUT(zero, RECUR_ROW(result, token) + column, left);
    // What the boundaries have wrong.
    if (item == 0u && head == 0u && tile == 0u) {
      const u32 last = sequence + 1u >= sequences ? sequences : sequence;
      for (u32 i = sequence; i <= last; ++i) {
        const int boundary = LOAD_BOUNDARY(i);
        if (boundary < 0 || boundary > TO_INT(tokens)) RAISE(RECUR_ERROR_OUTSIDE, i);
      }
      if (sequence < sequences && LOAD_BOUNDARY(sequence + 1u) < LOAD_BOUNDARY(sequence))
        RAISE(RECUR_ERROR_DECREASES, sequence + 1u);
    }
  }
}
if (sequence >= sequences) {
  left = 0u;
  end = begin;
}

// The state: ROWS key dims of four columns.
FLOAT4 state[ROWS];
const u32 carried = (sequence * heads + head) * ARGS(key_dim);
UNROLL for (u32 r = 0u; r < ROWS; ++r) {
  const u32 k = part * ROWS + r;
  state[r] = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  if (k < ARGS(key_dim) && left > 0u) {
    if (RECUR_HAS(RECUR_RESUME)) {
      state[r] = LOAD_CARRIED((carried + k) * ARGS(value_dim) + column, left);
    } else if (RECUR_HAS(RECUR_INITIAL)) {
      state[r] = LOAD_INITIAL(RECUR_STATE(initial_state, k) + column, left);
    }
  }
}

const float decay_of_head = RECUR_DECAY_OF_HEAD;
const u32 length = end - begin;
const u32 count = ARGS(first) < length ? min(ARGS(most), length - ARGS(first)) : 0u;
for (u32 block = 0u; block < count; block += TOKENS) {
  const u32 block_tokens = min(TO_U32(TOKENS), count - block);
  for (u32 i = item; i < block_tokens * RECUR_KEY_FOURS; i += RECUR_ITEMS) {
    const u32 token = RECUR_TOKEN(block + i / RECUR_KEY_FOURS), k = i % RECUR_KEY_FOURS * 4u;
    const u32 here = k < ARGS(key_dim) ? min(4u, ARGS(key_dim) - k) : 0u;
    FLOAT4 query = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), key = query, decay = query;
    if (here > 0u) {
      query = LOAD_QUERY(RECUR_ROW(query, token) + k, here);
      key = LOAD_KEY(RECUR_ROW(key, token) + k, here);
      float shared_decay = decay_of_head;
      if (RECUR_HAS(RECUR_GATE)) shared_decay += LOAD_GATE(RECUR_ROW(g, token));
      decay += shared_decay;
      if (RECUR_HAS(RECUR_KEY_GATE)) decay += LOAD_KEY_GATE(RECUR_ROW(g, token) + k, here);
      if (RECUR_HAS(RECUR_GK)) decay += LOAD_GK(RECUR_ROW(gk, token) + k, here);
    }
    SPACE(RECUR_QUERIES + i) = query;
    SPACE(RECUR_KEYS + i) = key;
    SPACE(RECUR_DECAYS + i) = RECUR_HAS(RECUR_GV) ? decay : RECUR_EXP(decay);
  }
  for (u32 i = item; i < block_tokens * WG_X; i += RECUR_ITEMS) {
    const u32 token = RECUR_TOKEN(block + i / WG_X);
    const u32 from = tile * RECUR_COLUMNS + 4u * (i % WG_X);
    const u32 here = from < ARGS(value_dim) ? min(4u, ARGS(value_dim) - from) : 0u;
    FLOAT4 value = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), decay = value;
    if (here > 0u) {
      value = LOAD_VALUE(RECUR_ROW(value, token) + from, here);
      if (RECUR_HAS(RECUR_GV)) decay = LOAD_GV(RECUR_ROW(gv, token) + from, here);
    }
    SPACE(RECUR_VALUES + i) = value;
    SPACE(RECUR_VALUE_DECAYS + i) = decay;
  }
  RECUR_BARRIER();
  for (u32 t = 0u; t < block_tokens; ++t) {
    const FLOAT4 value = SPACE(RECUR_VALUES + t * WG_X + lane);
    const FLOAT4 value_decay = SPACE(RECUR_VALUE_DECAYS + t * WG_X + lane);
    FLOAT4 share = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
    UNROLL for (u32 r = 0u; r < ROWS; r += 4u) {
      const u32 at = t * RECUR_KEY_FOURS + (part * ROWS + r) / 4u;
      const FLOAT4 query = SPACE(RECUR_QUERIES + at), key = SPACE(RECUR_KEYS + at);
      const FLOAT4 decay = SPACE(RECUR_DECAYS + at);
      if (RECUR_HAS(RECUR_GV)) {
        state[r] *= RECUR_EXP(value_decay + decay.x);
        state[r + 1u] *= RECUR_EXP(value_decay + decay.y);
        state[r + 2u] *= RECUR_EXP(value_decay + decay.z);
        state[r + 3u] *= RECUR_EXP(value_decay + decay.w);
      } else {
        state[r] *= decay.x;
        state[r + 1u] *= decay.y;
        state[r + 2u] *= decay.z;
        state[r + 3u] *= decay.w;
      }
      state[r] += value * key.x;
      state[r + 1u] += value * key.y;
      state[r + 2u] += value * key.z;
      state[r + 3u] += value * key.w;
      share += state[r] * query.x + state[r + 1u] * query.y;
      share += state[r + 2u] * query.z + state[r + 3u] * query.w;
    }
    SPACE(RECUR_SHARES + t * RECUR_ITEMS + item) = share;
  }
  RECUR_BARRIER();
  for (u32 i = item; i < block_tokens * WG_X; i += RECUR_ITEMS) {
    const u32 from = tile * RECUR_COLUMNS + 4u * (i % WG_X);
    if (from < ARGS(value_dim)) {
      FLOAT4 sum = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
      for (u32 p = 0u; p < WG_Y; ++p)
        sum += SPACE(RECUR_SHARES + i / WG_X * RECUR_ITEMS + p * WG_X + i % WG_X);
      STORE_OUTPUT(sum * ARGS(scale), RECUR_ROW(result, RECUR_TOKEN(block + i / WG_X)) + from,
                   min(4u, ARGS(value_dim) - from));
    }
  }
}

UNROLL for (u32 r = 0u; r < ROWS; ++r) {
  const u32 k = part * ROWS + r;
  if (k < ARGS(key_dim) && left > 0u) {
    if (RECUR_HAS(RECUR_PAUSE)) {
      STORE_CARRIED(state[r], (carried + k) * ARGS(value_dim) + column, left);
    } else if (RECUR_HAS(RECUR_FINAL)) {
      STORE_FINAL(state[r], RECUR_STATE(final_state, k) + column, left);
    }
  }
}
