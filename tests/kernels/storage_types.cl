// SPDX-License-Identifier: Apache-2.0
// abi/storage.h and lib/bytes alone. An item owns one number: it reads the bits `item % 256` as every type, and
// stores its float as every type.
#include "lib/bytes.clh"
#include "lib/errors.clh"

typedef struct {
  uint first_error, count;
} Args;

KERNEL void storage_types(const global uchar* bytes, const global float* floats, global float* from, global uchar* to,
                          global uint* errors, const Args args) {
  const uint count = args.count;
  const uint item = get_global_id(0);
  if (item >= count) return;
  const uint bits = load_byte(bytes, item % 256u);
  const uint types[4] = {DTYPE_I8, DTYPE_U8, DTYPE_E4M3FN, DTYPE_E5M2};
  for (uint i = 0; i < 4; ++i) {
    if (item < 256u) from[i * 256u + item] = from_storage(types[i], bits);
    store_byte(to_storage(types[i], floats[item]), to, (size_t)i * count + item);
  }
  const uint half_byte = load_half_byte(bytes, item % 512u);
  if (item < 512u) {
    from[1024u + item] = from_storage(DTYPE_I4, half_byte);
    from[1536u + item] = from_storage(DTYPE_U4, half_byte);
  }
  if (item % 2u == 0u) {
    store_half_bytes(to_storage(DTYPE_I4, floats[item]), to_storage(DTYPE_I4, floats[item + 1u]), to,
                     (size_t)8 * count + item);
    store_half_bytes(to_storage(DTYPE_U4, floats[item]), to_storage(DTYPE_U4, floats[item + 1u]), to,
                     (size_t)9 * count + item);
  }
  if (item % 7u == 3u) raise_error(errors, args.first_error, 1u, item + 10u);
}
