// SPDX-License-Identifier: Apache-2.0
// What     cache[slots[n], :] = rows[n, :], and nothing where slots[n] is no row of the cache
// Who      A work-group owns one row, an item every WG_X-th feature of it.
// Memory   Rows and slots once; the rows of the cache that are written.
// Numerics Bits are copied.
// Assumes  No two slots are equal.
// WG_X comes from the configuration, as a -D.
typedef struct {
  uint features, cache_rows, rows_offset, slots_offset, cache_offset;
  uint errors;  // where the words of this call begin; Tessera fills it in
} Args;

__attribute__((reqd_work_group_size(WG_X, 1, 1))) kernel void append_rows(const global float* rows,
                                                                          const global int* slots, global float* cache,
                                                                          global uint* errors, const Args args) {
  const uint n = get_group_id(0);
  const int slot = slots[args.slots_offset + n];
  if (slot < 0 || slot >= (int)args.cache_rows) {
    // The smallest index wins, whatever the order of work-groups.
    if (get_local_id(0) == 0) atomic_min(errors + args.errors, n);
    return;
  }
  for (uint i = get_local_id(0); i < args.features; i += WG_X) {
    cache[args.cache_offset + (size_t)slot * args.features + i] = rows[args.rows_offset + (size_t)n * args.features + i];
  }
}
