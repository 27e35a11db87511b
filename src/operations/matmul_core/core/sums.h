// SPDX-License-Identifier: Apache-2.0
// The body of matmul/core/sums, in the text that OpenCL C and GLSL share: an item has four columns
// of a batch and a share of the terms.

const u32 vectors = (ARGS(n) + 3u) / 4u, terms = ARGS(sums) * ARGS(k);
const u32 each = (terms + ARGS(splits) - 1u) / ARGS(splits);
const u32 units = ARGS(splits) * ARGS(batches) * vectors;
for (u32 unit = GROUP_ID_X * TO_U32(WG_X) + LOCAL_ID_X; unit < units;
     unit += GROUP_COUNT_X * TO_U32(WG_X)) {
  const u32 split = unit / vectors / ARGS(batches), batch = unit / vectors % ARGS(batches);
  const u32 column = unit % vectors * 4u, count = min(ARGS(n) - column, 4u);
  const u32 at = matmul_base(MATMUL_ARGUMENTS ARGS(b), batch) + column * ARGS(b).column;
  const bool whole = (ARGS(features) & MATMUL_B_BY_COLUMNS) != 0u && count == 4u;
  FLOAT4 sum = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  const u32 last = min((split + 1u) * each, terms);
  for (u32 term = min(split * each, terms); term < last;) {
    const u32 summand = term / ARGS(k), row = ARGS(b).row;
    const u32 rows = min(ARGS(k) - term % ARGS(k), last - term);
    u32 from = at + term % ARGS(k) * row + summand / ARGS(sums1) * ARGS(b_sum0) +
               summand % ARGS(sums1) * ARGS(b_sum1);
    term += rows;
    u32 i = 0u;
    // Several reads are on their way at a time.
    for (; whole && i + 4u <= rows; i += 4u, from += 4u * row) {
      const FLOAT4 first = LOAD_B_VECTOR(from, B_TYPE), second = LOAD_B_VECTOR(from + row, B_TYPE);
      const FLOAT4 third = LOAD_B_VECTOR(from + 2u * row, B_TYPE);
      const FLOAT4 fourth = LOAD_B_VECTOR(from + 3u * row, B_TYPE);
      sum += first;
      sum += second;
      sum += third;
      sum += fourth;
    }
    for (; i < rows; ++i, from += row) {
      if (whole) {
        sum += LOAD_B_VECTOR(from, B_TYPE);
      } else {
        sum += LOAD_B_STEPS(from, ARGS(b).column, count, B_TYPE);
      }
    }
  }
  STORE_PARTIAL(unit, sum);
}
