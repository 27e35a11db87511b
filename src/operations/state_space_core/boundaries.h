// SPDX-License-Identifier: Apache-2.0
// The body of state_space/core/boundaries.cl and boundaries.comp. Text for OpenCL C and GLSL.

const u32 item = LOCAL_ID_X, count = ARGS(sequences) + 1u;
const u32 part = (count + TO_U32(WG_X) - 1u) / TO_U32(WG_X);
const u32 first = min(item * part, count), last = min(first + part, count);
int most = 0;
for (u32 i = first; i < last; ++i) {
  const int boundary = LOAD_BOUNDARY(i);
  if (boundary < 0 || boundary > TO_INT(ARGS(tokens))) RAISE(SPACE_ERROR_OUTSIDE, i);
  if (i > 0u && boundary < LOAD_BOUNDARY(i - 1u)) RAISE(SPACE_ERROR_DECREASES, i);
  most = max(most, clamp(boundary, 0, TO_INT(ARGS(tokens))));
}
PARTS(item) = most;
SPACE_BARRIER();
most = 0;
for (u32 i = 0u; i < item; ++i) most = max(most, PARTS(i));
for (u32 i = first; i < last; ++i) {
  most = max(most, clamp(LOAD_BOUNDARY(i), 0, TO_INT(ARGS(tokens))));
  STORE_BOUNDARY(most, i);
}
