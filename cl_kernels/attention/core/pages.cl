// SPDX-License-Identifier: Apache-2.0
// What     The table of rows of sequences whose keys lie in pages, from their lengths and tables, which it checks, and
//          where their rows begin: which keys each query row may see.
// Who      Group (x): the rows of sequence x; one group more where there is query_start_loc, for rows of no sequence.
// Memory   What a sequence's length says of its line of the table, once; 16 bytes per row written.
// Numerics Whole numbers. What contradicts the operands counts as the nearest that does not, and is raised.
// Assumes  Lengths below 2^30; of query_start_loc, common/boundaries has run.
#include "lib/errors.clh"
#include "operations/attention_core/core/pages_args.h"

typedef struct {
  const struct AttentionPages* args;
  const global int* tables;
} Paging;
#define PAGES_PARAMETERS const Paging *paging,
#define PAGES_ARGUMENTS paging,
#define PAGES(name) (paging->args->name)
#define TABLE_VALUE(n) (paging->tables[n])
#include "operations/attention_core/core/pages.h"

#define PAGES_AT_ONCE 8  // loads of an item under way
#define RAISE(error, index) raise_error(errors, a.errors, error, index)
#define ARGS(name) (a.name)
#define END(n) ends[a.ends_offset + (uint)(n) * a.ends_stride]

KERNEL void attention_pages(global int4* restrict scratch, const global int* restrict block_tables,
                            const global int* restrict lengths, const global int* restrict begins,
                            const global int* restrict num_seqs, const global int* restrict ends,
                            volatile global uint* errors, const struct AttentionPagesArgs a) {
  local int missing;
  const Paging paging_operands = {&a.pages, block_tables}, *paging = &paging_operands;
  const int sequence = get_group_id(0), item = get_local_id(0), rows = (int)a.rows;
  const int capacity = (int)(a.per_sequence * a.pages.page_size);
  int count = (int)a.sequences, begin = sequence, end = sequence + 1;
  if (a.starts != 0) {
    const int wanted = num_seqs[a.count_offset];
    count = clamp(wanted, 0, count);
    if (sequence == 0 && item == 0 && wanted != count) RAISE(PAGES_BAD_COUNT, 0);
    begin = begins[a.begins + sequence];
    end = sequence < count ? begins[a.begins + sequence + 1] : begin;
  }
  if (a.ends != 0) {
#include "operations/attention_core/core/distribution.h"
  }

  int keys = 0;
  if (sequence < count) {
    const int length = lengths[a.lengths_offset + (uint)sequence * a.lengths_stride];
    keys = clamp(length, 0, capacity);
    if (item == 0 && length != keys) RAISE(PAGES_BAD_LENGTH, sequence);
    if (item == 0 && a.starts != 0 && end - begin > keys) RAISE(PAGES_MORE_ROWS, sequence);
  }
  const int pages = (keys + (int)a.pages.page_size - 1) / (int)a.pages.page_size;
  // Pages in front of the window of the first row may have been given to others.
  const int first_seen = a.band_low > INDEX_MIN ? max(0, keys - (end - begin) + a.band_low) : 0;
  if (item == 0) missing = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int first = first_seen / (int)a.pages.page_size + item; first < pages; first += PAGES_AT_ONCE * WG_X) {
    uint page[PAGES_AT_ONCE];  // numbers past the last one repeat it
    UNROLL for (int i = 0; i < PAGES_AT_ONCE; ++i)
      page[i] = page_in_table(paging, sequence, min(first + i * WG_X, pages - 1));
    UNROLL for (int i = 0; i < PAGES_AT_ONCE; ++i) {
      if (page[i] < a.pages.pages || first + i * WG_X >= pages) continue;
      atomic_or(&missing, 1);
      RAISE(PAGES_OUTSIDE_POOL, (ulong)sequence * a.per_sequence + first + i * WG_X);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const bool hides = missing != 0;

  for (int row = begin + item; row < end; row += WG_X) {
    const int position = row - begin + keys - (end - begin), last = min(keys, position + 1);
    const int first = a.band_low > INDEX_MIN ? max(0, position + a.band_low) : 0;
    const int4 entry = {first, last, position, PAGED_ENTRY(sequence, hides)};
    const int4 nothing = {0, 0, 0, PAGED_ENTRY(sequence, false)};
    scratch[a.table + row] = first < last ? entry : nothing;
  }
  if (a.starts != 0 && sequence == (int)a.sequences) {  // rows before the first sequence and after the last
    const int4 nothing = {0, 0, 0, 0};
    const int first = begins[a.begins];
    for (int row = item; row < rows; row += WG_X)
      if (row < first || row >= begin) scratch[a.table + row] = nothing;
  }
}
