// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/tables/last.cl and kv_cache/tables/last.comp: of tokens with one place the
// last stays. Text for OpenCL C and GLSL. PLACE(n) is the place of token n, OWNER(place) a word of
// that place, which the first round clears, the second gives the last token, and the third reads.

const u32 n = GLOBAL_ID;
if (n < ARGS(list)) {
  const i32 own = PLACE(n), number = TO_INT(n) + 1;
  const bool has_place = own != CACHE_NOWHERE;
  if (ARGS(round) == CACHE_CLEARS) {
    if (has_place) OWNER(own) = 0;
  } else if (ARGS(round) == CACHE_CLAIMS) {
    if (has_place) CLAIM(own, number);
  } else {
    bool is_last = has_place;
    if (has_place) is_last = OWNER(own) == number;
    LAST_PLACE(n) = is_last ? own : CACHE_NOWHERE;
  }
}
