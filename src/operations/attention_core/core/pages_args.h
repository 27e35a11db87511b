// SPDX-License-Identifier: Apache-2.0
// Arguments of kernels whose keys lie in the pages of a pool.
#ifndef TESSERA_OPERATIONS_ATTENTION_PAGES_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_PAGES_ARGS_H
#include "operations/attention_core/core/policy_args.h"

TESSERA_ABI_BEGIN

// Where a table says which page holds the tokens of a sequence. In pools, the batch strides of keys
// and values are those of pages. Token t is token t % page_size of the page at t / page_size, which
// is mul_hi(2 t, page_factor) >> page_shift for every t below 2^31.
struct AttentionPages {
  u32 offset;
  u32 stride_sequence;
  u32 stride_page;
  u32 pages;  // of the pool; other numbers in the table are no pages
  u32 page_size;
  u32 page_factor;
  u32 page_shift;
};

// Of kernels with PAGED=1.
struct AttentionPagedCall {
  STRUCT(AttentionArgs) core;
  STRUCT(AttentionPolicyArgs) policy;
  STRUCT(AttentionPages) pages;
};

// Scales of codes by the axes of their rows; a stride of 0 shares them.
struct AttentionScales {
  u32 offset;
  u32 stride_batch;  // of pools, of pages
  u32 stride_row;
  u32 stride_head;
};

// Of kernels with CODES=1; with PAGED=0 the pages are nothing.
struct AttentionCodesCall {
  STRUCT(AttentionArgs) core;
  STRUCT(AttentionPolicyArgs) policy;
  STRUCT(AttentionPages) pages;
  STRUCT(AttentionScales) key_scales;
  STRUCT(AttentionScales) value_scales;
};

// Of attention/core/pages, which makes the table of rows.
struct AttentionPagesArgs {
  STRUCT(AttentionPages) pages;
  u32 sequences;
  u32 per_sequence;  // columns of the table
  u32 rows;          // query rows; without query_start_loc one for each sequence
  u32 starts;        // 1 = query_start_loc and num_seqs say whose they are,
  u32 table;         // of rows, in entries of four ints
  u32 begins;        // as common/boundaries has left them, in ints of the scratch buffer
  i32 band_low;      // of key - position; INDEX_MIN = no lower bound
  u32 lengths_offset;
  u32 lengths_stride;
  u32 count_offset;  // of num_seqs
  u32 ends;          // of distribution, three, which are checked; 0 = there is none
  u32 ends_offset;
  u32 ends_stride;
  u32 errors;
};

TESSERA_ABI_END

// What is raised, in the order of the record; without query_start_loc the first two.
#define PAGES_OUTSIDE_POOL 0u
#define PAGES_BAD_LENGTH 1u
#define PAGES_BAD_START 2u
#define PAGES_BAD_COUNT 3u
#define PAGES_MORE_ROWS 4u
#define PAGES_BAD_END 5u
#define PAGES_NOT_ONE_ROW 6u

// The last number of an entry in the table of rows: the row's sequence, and whether some of the
// sequence's tokens are in no page of the pool, so that they are to be asked for one by one.
#define PAGED_ENTRY(sequence, hides) ((sequence)*2 + ((hides) ? 1 : 0))
#define PAGED_SEQUENCE(entry) ((entry) >> 1)
#define PAGED_HIDES(entry) (((entry)&1) != 0)

#endif  // TESSERA_OPERATIONS_ATTENTION_PAGES_ARGS_H
