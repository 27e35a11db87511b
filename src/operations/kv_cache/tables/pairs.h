// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/tables/pairs.cl and kv_cache/tables/pairs.comp: which pages are copied from
// where to where. Text for OpenCL C and GLSL. SOURCE(i) and TARGET(i) are the operands' pages,
// LIST(part, i) is entry i of a part of scratch.

#define CACHE_IS_PAGE(page, pages) ((page) >= 0 && (page) < TO_INT(pages))
const u32 n = GLOBAL_ID, pairs = ARGS(pairs);
if (n < pairs) {
  const i32 source = SOURCE(n), target = TARGET(n);
  const bool is_skipped = source == CACHE_NOWHERE || target == CACHE_NOWHERE;
  const bool has_source = CACHE_IS_PAGE(source, ARGS(source_pages));
  const bool has_target = CACHE_IS_PAGE(target, ARGS(target_pages));
  if (!is_skipped && !has_source) RAISE(CACHE_BAD_SOURCE, n);
  if (!is_skipped && !has_target) RAISE(CACHE_BAD_TARGET, n);
  bool is_copied = has_source && has_target, is_staged = false;
  for (u32 i = 0u; i < pairs; ++i) {
    const i32 from = SOURCE(i), to = TARGET(i);
    const bool counts =
        CACHE_IS_PAGE(from, ARGS(source_pages)) && CACHE_IS_PAGE(to, ARGS(target_pages));
    is_copied = is_copied && !(counts && i > n && to == target);
    is_staged = is_staged || (counts && ARGS(one_pool) != 0u && to == source);
  }
  LIST(0u, n) = is_copied && is_staged ? source : CACHE_NOWHERE;
  LIST(1u, n) = is_copied && !is_staged ? source : CACHE_NOWHERE;
  LIST(2u, n) = is_copied ? target : CACHE_NOWHERE;
  LIST(3u, n) = is_copied && is_staged ? target : CACHE_NOWHERE;
}
