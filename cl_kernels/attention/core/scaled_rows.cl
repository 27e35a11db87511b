// SPDX-License-Identifier: Apache-2.0
// What     Rows by another scale: x / divisor * factor, rounded to the storage type or to a code's.
// Who      Item (x): element x of all rows.
// Memory   Every element read and written once; to may be from.
// Numerics Float: a division, a product and one rounding to nearest even; NaN stays NaN but in whole numbers, where it is 0.
// Assumes  Fewer than 2^32 elements.
#include "lib/bytes.clh"
#include "operations/attention_core/scaled_args.h"

KERNEL void attention_scaled_rows(const global scalar* from, global scalar* to, const struct AttentionScaledArgs a) {
  const uint n = get_global_id(0);
  if (n >= a.rows * a.heads * a.dim) return;
  const size_t d = n % a.dim, head = n / a.dim % a.heads, row = n / a.dim / a.heads;
  const float x =
      load_scalar(from, a.from.offset + row * a.from.stride_row + head * a.from.stride_head + d) / a.divisor * a.factor;
  float result = x > a.most ? a.most : x < -a.most ? -a.most : x;
  if (a.code != 0) result = from_storage(a.code, to_storage(a.code, result));
  store_scalar(result, to, a.to.offset + row * a.to.stride_row + head * a.to.stride_head + d);
}
