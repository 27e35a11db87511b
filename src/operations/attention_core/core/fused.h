// SPDX-License-Identifier: Apache-2.0
// The body of attention/core/fused.cl and attention/core/fused.comp. Text for OpenCL C and GLSL.
// END(n) and START(n) are what the operands hold, RAISE(kind, index) raises an error, LOAD(at) and
// STORE(x, at) are elements of rows, PAIR(n) a float of the scratch buffer.

const u32 n = GLOBAL_ID;
const i32 self = TO_INT(n), most = TO_INT(ARGS(distribution.sequences));
if (ARGS(distribution.ends) != 0u) {
  if (n < 3u) {
    const i32 before = n > 0u ? END(max(self - 1, 0)) : 0;
    if (END(self) < before || END(self) > most) RAISE(DISTRIBUTION_OUT_OF_ORDER, n);
  }
  if (self >= 0 && self < min(END(0), most)) {
    const i32 first = START(self), end = START(self + 1);
    if (end < first || TO_U32(end) - TO_U32(first) != 1u) RAISE(DISTRIBUTION_NOT_ONE_ROW, n);
  }
}
if (n < ARGS(pairs))
  PAIR(ARGS(pairs_offset) + n) = n % 2u == 0u ? ARGS(key_scale) : ARGS(value_scale);
if (n < ARGS(elements)) {
  const u32 d = n % ARGS(dim), head = n / ARGS(dim) % ARGS(heads);
  const u32 row = n / ARGS(dim) / ARGS(heads);
  const float x =
      LOAD(ARGS(from.offset) + row * ARGS(from.stride_row) + head * ARGS(from.stride_head) + d) /
      ARGS(divisor) * ARGS(factor);
  float result = x > ARGS(most) ? ARGS(most) : x < -ARGS(most) ? -ARGS(most) : x;
  if (ARGS(code) != 0u) result = from_storage(ARGS(code), to_storage(ARGS(code), result));
  STORE(result, ARGS(to.offset) + row * ARGS(to.stride_row) + head * ARGS(to.stride_head) + d);
}
