// SPDX-License-Identifier: Apache-2.0
// What     Chunks of packed sequences: scratch[s] = chunks of the sequences before s, at most
//          `rows`; one more for all.
//          Masks: scratch[b] = tokens of batch entry b that count.
// Who      Chunks: one work-group, an item owns consecutive sequences. Masks: a work-group owns
//          batch entries, an item every WG_X-th token of them.
// Memory   cu_seqlens twice, or the mask once.
// Numerics Integers. Sums of chunks stop at `rows`: overlapping sequences can't make them wrap.
// Assumes  sequences, rows and tokens are below 2^30.
#include "pooling/pools.clh"

INLINE uint chunks_of(const global int* cu_seqlens, const struct MeanPoolingArgs* a,
                      uint sequence) {
  const Pool pool = pool_of_sequence(cu_seqlens, a, sequence);
  return (pool.end - pool.begin + a->chunk - 1) / a->chunk;
}

KERNEL void mean_prepare(const global uchar* restrict mask, const global int* restrict cu_seqlens,
                         global int* restrict scratch, const struct MeanPoolingArgs a) {
  local uint sums[WG_X];
  const uint item = get_local_id(0);
  if (MASKED) {
    for (uint batch = get_group_id(0); batch < a.batch; batch += get_num_groups(0)) {
      uint sum = 0;
      for (uint token = item; token < a.tokens; token += WG_X)
        sum += is_counted(mask, &a, batch, token);
      sums[item] = sum;
      barrier(CLK_LOCAL_MEM_FENCE);
      if (item == 0) {
        for (uint other = 1; other < WG_X; ++other) sum += sums[other];
        scratch[batch] = (int)sum;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  } else {
    cu_seqlens += a.index_offset;
    const uint share = (a.sequences + WG_X - 1) / WG_X;
    const uint first = min(item * share, a.sequences), end = min(first + share, a.sequences);
    uint sum = 0;
    for (uint sequence = first; sequence < end; ++sequence)
      sum = min(sum + chunks_of(cu_seqlens, &a, sequence), a.rows);
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint before = 0;
    for (uint other = 0; other < item; ++other) before = min(before + sums[other], a.rows);
    for (uint sequence = first; sequence < end; ++sequence) {
      scratch[sequence] = (int)before;
      before = min(before + chunks_of(cu_seqlens, &a, sequence), a.rows);
    }
    if (item == WG_X - 1) scratch[a.sequences] = (int)before;
  }
}
