// SPDX-License-Identifier: Apache-2.0
// Where the keys and values of a kv head lie: one after the other, or with PAGED=1 in the pages that a table lists for
// their sequence (operations/attention_core/pages_args.h).
#ifndef TESSERA_ATTENTION_CORE_KEY_ROWS_GLSL
#define TESSERA_ATTENTION_CORE_KEY_ROWS_GLSL

#if PAGED
uint key_sequence;  // whose keys they are

// Elements from the head's first key on. Tokens of no page are hidden: any page of the pool will do.
uint key_at(uint key, uint stride, uint stride_page) {
  const uint number = page_number(key);
  const uint page = min(page_in_table(key_sequence, number), PAGES(pages) - 1u);
  return page * stride_page + (key - number * PAGES(page_size)) * stride;
}
// Of a pool, the first page.
#define KEYS_OF(batch) 0u
#else
#define key_at(key, stride, stride_page) ((key) * (stride))
#define KEYS_OF(batch) (batch)
#endif

#endif  // TESSERA_ATTENTION_CORE_KEY_ROWS_GLSL
