// SPDX-License-Identifier: Apache-2.0
// The body of matmul/sparse/product, in the text that OpenCL C and GLSL share. The language brings
// LIST(i), the list; TABLE(i), words of its table; LOAD_A(at), LOAD_B(at) and STORE_RESULT(x, at).
//
//   An item has an element of a result, and the terms of the result's blocks one after the other.

const u32 m = ARGS(m), n = ARGS(n), each = m * n, units = LIST(0u).x * each;
for (u32 unit = GLOBAL_ID_X; unit < units; unit += GLOBAL_SIZE_X) {
  const UINT4 entry = LIST(1u + unit / each);
  const u32 row = unit % each / n, column = unit % n;
  float sum = 0.0f;
  for (u32 block = entry.y; block < entry.z; ++block) {
    const u32 a_at = ARGS(a).offset + row * ARGS(a).row + TABLE(2u * block);
    const u32 b_at = ARGS(b).offset + column * ARGS(b).column + TABLE(2u * block + 1u);
    for (u32 k = 0u; k < ARGS(k); ++k)
      sum = fma(LOAD_A(a_at + k * ARGS(a).column), LOAD_B(b_at + k * ARGS(b).row), sum);
  }
  STORE_RESULT(sum, ARGS(result).offset + entry.x * ARGS(result).group + row * ARGS(result).row +
                        column * ARGS(result).column);
}
