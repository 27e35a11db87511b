// SPDX-License-Identifier: Apache-2.0
// Four elements of a row at a time, and the tails of rows that are no multiple of four. ALIGNED is 1 where every such
// vector lies at a multiple of four elements. `elements` and `vectors` are two views of one binding, and `left`, at
// least 1, is how many elements the row has from `at` on.
#ifndef TESSERA_LIB_COLUMNS_GLSL
#define TESSERA_LIB_COLUMNS_GLSL

// Of elements that `convert` makes floats, and vectors that `convert4` does.
#define LOAD_COLUMN_AS(name, elements, vectors, convert, convert4) \
  vec4 name(uint at, uint left) {                                  \
    if (ALIGNED != 0u) return convert4(vectors[at / 4u]);          \
    vec4 value = vec4(convert(elements[at]), 0.0, 0.0, 0.0);       \
    if (left > 1u) value.y = convert(elements[at + 1u]);           \
    if (left > 2u) value.z = convert(elements[at + 2u]);           \
    if (left > 3u) value.w = convert(elements[at + 3u]);           \
    return value;                                                  \
  }
#define LOAD_COLUMN(name, elements, vectors) \
  LOAD_COLUMN_AS(name, elements, vectors, load_scalar, load_scalar4)
#define LOAD_FLOAT_COLUMN(name, elements, vectors) \
  LOAD_COLUMN_AS(name, elements, vectors, float, vec4)

#define STORE_COLUMN_AS(name, elements, vectors, convert, convert4) \
  void name(vec4 value, uint at, uint left) {                       \
    if (ALIGNED != 0u) {                                            \
      vectors[at / 4u] = convert4(value);                           \
      return;                                                       \
    }                                                               \
    elements[at] = convert(value.x);                                \
    if (left > 1u) elements[at + 1u] = convert(value.y);            \
    if (left > 2u) elements[at + 2u] = convert(value.z);            \
    if (left > 3u) elements[at + 3u] = convert(value.w);            \
  }
#define STORE_COLUMN(name, elements, vectors) \
  STORE_COLUMN_AS(name, elements, vectors, store_scalar, store_scalar4)
#define STORE_FLOAT_COLUMN(name, elements, vectors) \
  STORE_COLUMN_AS(name, elements, vectors, float, vec4)

#endif  // TESSERA_LIB_COLUMNS_GLSL
