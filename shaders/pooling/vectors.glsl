// SPDX-License-Identifier: Apache-2.0
// Columns of four features, and the tails of heads that are no multiple of four.
#ifndef TESSERA_POOLING_VECTORS_GLSL
#define TESSERA_POOLING_VECTORS_GLSL

// Where a column starts within a token of x and a row of y; `left` is how many features of its head
// are there, 0 = there is no such column.
struct Column {
  uint x, y, left;
};

uint count_columns() { return args.heads * ((args.dim + 3u) / 4u); }

Column column_at(uint column) {
  const uint head_columns = (args.dim + 3u) / 4u, head = column / head_columns,
             feature = column % head_columns * 4u;
  return Column(args.x_offset + head * args.x_stride_head + feature,
                args.y_offset + head * args.y_stride_head + feature,
                head < args.heads ? args.dim - feature : 0u);
}

// `elements` and `vectors` are the two views of one binding.
#define LOAD_COLUMN(name, elements, vectors)                     \
  vec4 name(uint at, uint left) {                                \
    if (ALIGNED != 0u) return load_scalar4(vectors[at / 4u]);    \
    vec4 value = vec4(load_scalar(elements[at]), 0.0, 0.0, 0.0); \
    if (left > 1u) value.y = load_scalar(elements[at + 1u]);     \
    if (left > 2u) value.z = load_scalar(elements[at + 2u]);     \
    if (left > 3u) value.w = load_scalar(elements[at + 3u]);     \
    return value;                                                \
  }

#define STORE_COLUMN(name, elements, vectors)                 \
  void name(vec4 value, uint at, uint left) {                 \
    if (ALIGNED != 0u) {                                      \
      vectors[at / 4u] = store_scalar4(value);                \
      return;                                                 \
    }                                                         \
    elements[at] = store_scalar(value.x);                     \
    if (left > 1u) elements[at + 1u] = store_scalar(value.y); \
    if (left > 2u) elements[at + 2u] = store_scalar(value.z); \
    if (left > 3u) elements[at + 3u] = store_scalar(value.w); \
  }

#endif  // TESSERA_POOLING_VECTORS_GLSL
