// SPDX-License-Identifier: Apache-2.0
// What     The table of rows of sequences whose keys lie in pages, from their lengths and tables, which it checks, and
//          where their rows begin: which keys each query row may see.
// Who      Group (x): the rows of sequence x; one group more where there is query_start_loc, for rows of no sequence.
// Memory   What a sequence's length says of its line of the table, once; 16 bytes per row written.
// Numerics Whole numbers. What contradicts the operands counts as the nearest that does not, and is raised.
// Assumes  Lengths below 2^30; of query_start_loc, common/boundaries has run.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/errors.glsl"
#include "operations/attention_core/core/pages_args.h"

layout(std430, binding = 0) writeonly buffer Scratch { ivec4 scratch[]; };
layout(std430, binding = 1) readonly buffer Tables { int block_tables[]; };
layout(std430, binding = 2) readonly buffer Lengths { int lengths[]; };
layout(std430, binding = 3) readonly buffer Begins { int begins[]; };
layout(std430, binding = 4) readonly buffer Count { int num_seqs[]; };
layout(std430, binding = 5) readonly buffer Ends { int ends[]; };
layout(std430, binding = 6) buffer Errors { uint errors[]; };
PUSH_ARGS(AttentionPagesArgs);

#define PAGES_PARAMETERS
#define PAGES_ARGUMENTS
#define PAGES(name) (args.pages.name)
#define TABLE_VALUE(n) (block_tables[n])
#include "operations/attention_core/core/pages.h"

shared int missing;

#define PAGES_AT_ONCE 8  // loads of an item under way

#define RAISE(error, index) RAISE_ERROR(errors, args.errors, error, uint(index))
#define ARGS(name) (args.name)
#define END(n) ends[args.ends_offset + uint(n) * args.ends_stride]

void main() {
  const int sequence = int(gl_WorkGroupID.x), item = int(gl_LocalInvocationID.x), rows = int(args.rows);
  const int step = int(WG_X), capacity = int(args.per_sequence * args.pages.page_size);
  int count = int(args.sequences), begin = sequence, end = sequence + 1;
  if (args.starts != 0u) {
    const int wanted = num_seqs[args.count_offset];
    count = clamp(wanted, 0, count);
    if (sequence == 0 && item == 0 && wanted != count) RAISE(PAGES_BAD_COUNT, 0);
    begin = begins[args.begins + uint(sequence)];
    end = sequence < count ? begins[args.begins + uint(sequence) + 1u] : begin;
  }
  if (args.ends != 0u) {
#include "operations/attention_core/core/distribution.h"
  }

  int keys = 0;
  if (sequence < count) {
    const int length = lengths[args.lengths_offset + uint(sequence) * args.lengths_stride];
    keys = clamp(length, 0, capacity);
    if (item == 0 && length != keys) RAISE(PAGES_BAD_LENGTH, sequence);
    if (item == 0 && args.starts != 0u && end - begin > keys) RAISE(PAGES_MORE_ROWS, sequence);
  }
  const int size = int(args.pages.page_size), pages = (keys + size - 1) / size;
  // Pages in front of the window of the first row may have been given to others.
  const int first_seen = args.band_low > INDEX_MIN ? max(0, keys - (end - begin) + args.band_low) : 0;
  if (item == 0) missing = 0;
  barrier();
  for (int first = first_seen / size + item; first < pages; first += PAGES_AT_ONCE * step) {
    uint page[PAGES_AT_ONCE];  // numbers past the last one repeat it
    for (int i = 0; i < PAGES_AT_ONCE; ++i)
      page[i] = page_in_table(uint(sequence), uint(min(first + i * step, pages - 1)));
    for (int i = 0; i < PAGES_AT_ONCE; ++i) {
      if (page[i] < args.pages.pages || first + i * step >= pages) continue;
      atomicOr(missing, 1);
      RAISE(PAGES_OUTSIDE_POOL, uint(sequence) * args.per_sequence + uint(first + i * step));
    }
  }
  barrier();
  const bool hides = missing != 0;

  for (int row = begin + item; row < end; row += step) {
    const int position = row - begin + keys - (end - begin), last = min(keys, position + 1);
    const int first = args.band_low > INDEX_MIN ? max(0, position + args.band_low) : 0;
    scratch[args.table + uint(row)] = first < last
                                          ? ivec4(first, last, position, PAGED_ENTRY(sequence, hides))
                                          : ivec4(0, 0, 0, PAGED_ENTRY(sequence, false));
  }
  if (args.starts != 0u && sequence == int(args.sequences)) {  // rows before the first sequence and after the last
    const int first = begins[args.begins];
    for (int row = item; row < rows; row += step)
      if (row < first || row >= begin) scratch[args.table + uint(row)] = ivec4(0);
  }
}
