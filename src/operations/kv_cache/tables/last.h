// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/tables/last.cl and kv_cache/tables/last.comp: of tokens with one place the
// last stays. Text for OpenCL C and GLSL. FOUR_PLACES(i) are those of tokens 4 i to 4 i + 3.

const u32 n = GLOBAL_ID, list = ARGS(list);
if (n < list) {
  const INT4 fours = FOUR_PLACES(n / 4u);
  const u32 at = n % 4u;
  const i32 own = at == 0u ? fours.x : at == 1u ? fours.y : at == 2u ? fours.z : fours.w;
  bool is_last =
      !((at < 1u && fours.y == own) || (at < 2u && fours.z == own) || (at < 3u && fours.w == own));
  for (u32 i = n / 4u + 1u; i < list / 4u; ++i) {
    const INT4 later = FOUR_PLACES(i);
    const bool taken = later.x == own || later.y == own || later.z == own || later.w == own;
    is_last = is_last && !taken;
  }
  LAST_PLACE(n) = is_last ? own : CACHE_NOWHERE;
}
