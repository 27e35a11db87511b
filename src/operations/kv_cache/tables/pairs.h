// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/tables/pairs.cl and kv_cache/tables/pairs.comp: which pages are copied from
// where to where. Text for OpenCL C and GLSL. SOURCE(i) and TARGET(i) are the operands' pages,
// LIST(part, i) is entry i of a part of scratch. OWNER(page) is a word of a page of the pool, which
// the first round clears, the second gives the last pair that it is the target of, and the third
// reads.

#define CACHE_IS_PAGE(page, pages) ((page) >= 0 && (page) < TO_INT(pages))
const u32 n = GLOBAL_ID;
if (n < ARGS(pairs)) {
  const i32 source = SOURCE(n), target = TARGET(n), number = TO_INT(n) + 1;
  const bool has_source = CACHE_IS_PAGE(source, ARGS(source_pages));
  const bool has_target = CACHE_IS_PAGE(target, ARGS(target_pages));
  const bool counts = has_source && has_target, in_pool = ARGS(one_pool) != 0u;
  if (ARGS(round) == CACHE_CLEARS) {
    if (counts) OWNER(target) = 0;
    if (counts && in_pool) OWNER(source) = 0;
  } else if (ARGS(round) == CACHE_CLAIMS) {
    if (counts) CLAIM(target, number);
  } else {
    const bool is_skipped = source == CACHE_NOWHERE || target == CACHE_NOWHERE;
    if (!is_skipped && !has_source) RAISE(CACHE_BAD_SOURCE, n);
    if (!is_skipped && !has_target) RAISE(CACHE_BAD_TARGET, n);
    bool is_copied = false, is_staged = false;
    if (counts) is_copied = OWNER(target) == number;
    if (counts && in_pool) is_staged = OWNER(source) != 0;
    LIST(0u, n) = is_copied && is_staged ? source : CACHE_NOWHERE;
    LIST(1u, n) = is_copied && !is_staged ? source : CACHE_NOWHERE;
    LIST(2u, n) = is_copied ? target : CACHE_NOWHERE;
    LIST(3u, n) = is_copied && is_staged ? target : CACHE_NOWHERE;
  }
}
