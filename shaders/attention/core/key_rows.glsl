// SPDX-License-Identifier: Apache-2.0
// Where the keys and values of a kv head lie: one after the other, or with PAGED=1 in the pages that a table lists for
// their sequence (operations/attention_core/core/pages_args.h). With CODES=1 they are codes of the type CODE_TYPE, and each
// row has a scale.
#ifndef TESSERA_ATTENTION_CORE_KEY_ROWS_GLSL
#define TESSERA_ATTENTION_CORE_KEY_ROWS_GLSL

#if PAGED
uint key_sequence;  // whose keys they are

struct KeyPlace {
  uint page, slot;
};

// Tokens of no page are hidden: any page of the pool will do.
KeyPlace key_place(uint key) {
  const uint number = page_number(key);
  return KeyPlace(min(page_in_table(key_sequence, number), PAGES(pages) - 1u), key - number * PAGES(page_size));
}

// Elements from the head's first key on.
uint place_at(KeyPlace at, uint stride, uint stride_page) { return at.page * stride_page + at.slot * stride; }
uint key_at(uint key, uint stride, uint stride_page) { return place_at(key_place(key), stride, stride_page); }
// Of a pool, the first page.
#define KEYS_OF(batch) 0u
#else
#define key_at(key, stride, stride_page) ((key) * (stride))
#define KEYS_OF(batch) (batch)
#endif

#if CODES
#include "lib/bytes.glsl"

// Up to four codes of a row that begins at element `at`, from `feature` on; 0 behind the last of its features.
#define LOAD_CODES(name, words)                                                                       \
  vec4 name(uint at, uint feature, uint features) {                                                   \
    vec4 x = vec4(0.0);                                                                               \
    if (feature >= features) return x;                                                                \
    const bool halves = CODE_TYPE == DTYPE_I4;                                                        \
    const uint bits = halves ? 4u : 8u, first = at + feature;                                         \
    if (ALIGNED != 0u) {                                                                              \
      const uint word = words[halves ? first / 8u : first / 4u] >> (halves ? first % 8u * 4u : 0u);   \
      [[unroll]] for (uint i = 0u; i < 4u; ++i)                                                       \
        x[i] = from_storage(CODE_TYPE, word >> i * bits & (halves ? 0xfu : 0xffu));                   \
    } else {                                                                                          \
      [[unroll]] for (uint i = 0u; i < 4u; ++i)                                                       \
        if (feature + i < features)                                                                   \
          x[i] = from_storage(CODE_TYPE, halves ? LOAD_HALF_BYTE(words, first + i) : LOAD_BYTE(words, first + i)); \
    }                                                                                                 \
    return x;                                                                                         \
  }

// The scale of a key or value of `kv_head` of `batch`; `scales` are its arguments.
#define SCALE_AT(buffer, scales, key)                                                                \
  buffer[(scales).offset + KEYS_OF(batch) * (scales).stride_batch + kv_head * (scales).stride_head + \
         key_at(key, (scales).stride_row, (scales).stride_batch)]
#endif

#endif  // TESSERA_ATTENTION_CORE_KEY_ROWS_GLSL
