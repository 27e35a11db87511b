// SPDX-License-Identifier: Apache-2.0
// The body of attention/core/fused.cl and attention/core/fused.comp. Text for OpenCL C and GLSL.
// LOAD(at) and STORE(x, at) are elements of rows, PAIR(n) a float of the scratch buffer.

const u32 n = GLOBAL_ID;
if (n < ARGS(pairs))
  PAIR(ARGS(pairs_offset) + n) = n % 2u == 0u ? ARGS(key_scale) : ARGS(value_scale);
if (n < ARGS(elements)) {
  const u32 d = n % ARGS(dim), head = n / ARGS(dim) % ARGS(heads);
  const u32 row = n / ARGS(dim) / ARGS(heads);
  const float stored =
      LOAD(ARGS(from.offset) + row * ARGS(from.stride_row) + head * ARGS(from.stride_head) + d);
  const float x = rounded_quotient(stored, ARGS(divisor)) * ARGS(factor);
  float result = x > ARGS(most) ? ARGS(most) : x < -ARGS(most) ? -ARGS(most) : x;
  if (ARGS(code) != 0u) result = from_storage(ARGS(code), to_storage(ARGS(code), result));
  STORE(result, ARGS(to.offset) + row * ARGS(to.stride_row) + head * ARGS(to.stride_head) + d);
}
