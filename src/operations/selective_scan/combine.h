// SPDX-License-Identifier: Apache-2.0
// The body of state_space/scan/combine.cl and combine.comp: an item adds up the shares of an
// element of the gradient of b or c, of a, of d or of delta_bias. Text for OpenCL C and GLSL.

// Adds numbers up in order, eight of which are asked for at once; `place` is that of number `at`.
#define SCAN_ADD_UP(count, place)                      \
  for (u32 begin = 0u; begin < (count); begin += 8u) { \
    float asked[8];                                    \
    UNROLL for (u32 i = 0u; i < 8u; ++i) {             \
      const u32 at = min(begin + i, (count)-1u);       \
      asked[i] = NUMBER(place);                        \
    }                                                  \
    UNROLL for (u32 i = 0u; i < 8u; ++i) {             \
      if (begin + i < (count)) sum += asked[i];        \
    }                                                  \
  }

const u32 states = ARGS(states), lanes = ARGS(lanes), channels = ARGS(dim) / ARGS(groups);
const u32 blocks = (channels + lanes - 1u) / lanes, tiles = blocks * ARGS(groups);
const u32 units = ARGS(batches) * ARGS(spans);
u32 i = (GROUP_ID_Y * GROUP_COUNT_X + GROUP_ID_X) * TO_U32(WG_X) + LOCAL_ID_X;
const u32 of_factors =
    SCAN_HAS(SCAN_GRAD_B | SCAN_GRAD_C) ? ARGS(batches) * ARGS(tokens) * ARGS(groups) * states : 0u;
float sum = 0.0f;
if (i < 2u * of_factors) {
  const u32 which = i / of_factors;
  i %= of_factors;
  const u32 n = i % states, branch = i / states % ARGS(groups), row = i / states / ARGS(groups);
  const u32 token = row % ARGS(tokens), batch = row / ARGS(tokens);
  if (SCAN_HAS(which == 0u ? SCAN_GRAD_B : SCAN_GRAD_C)) {
    const u32 from =
        ARGS(products) + (row * tiles + branch * blocks) * 2u * states + which * states;
    SCAN_ADD_UP(blocks, from + 2u * at * states + n)
    if (which == 0u) {
      STORE_DB(sum, SCAN_FACTOR(db, token, n));
    } else {
      STORE_DC(sum, SCAN_FACTOR(dc, token, n));
    }
  }
} else if (i - 2u * of_factors < ARGS(dim) * (states + 2u)) {
  i -= 2u * of_factors;
  const u32 channel = i % ARGS(dim), n = i / ARGS(dim);
  const u32 branch = channel / channels, column = channel % channels;
  const u32 tile = branch * blocks + column / lanes, lane = column % lanes;
  if (n < states) {
    const u32 fours = ARGS(rows) / 4u, items = lanes * ARGS(parts);
    const u32 item = n / ARGS(rows) * lanes + lane, f = n % ARGS(rows) / 4u;
    SCAN_ADD_UP(units,
                4u * (ARGS(made) + ((at * tiles + tile) * fours + f) * items + item) + n % 4u)
    if (SCAN_HAS(SCAN_GRAD_A))
      STORE_DA(sum, ARGS(da_offset) + channel * ARGS(da_row) + n * ARGS(da_column));
  } else {
    SCAN_ADD_UP(units, ARGS(sums) + 2u * ((at * tiles + tile) * lanes + lane) + n - states)
    if (n == states && SCAN_HAS(SCAN_GRAD_D)) {
      STORE_DD(sum, ARGS(dd_offset) + channel * ARGS(dd_stride));
    } else if (n > states && SCAN_HAS(SCAN_GRAD_BIAS)) {
      STORE_DBIAS(sum, ARGS(dbias_offset) + channel * ARGS(dbias_stride));
    }
  }
}
