// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the kernels that read tables: C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_KV_CACHE_TABLES_ARGS_H
#define TESSERA_OPERATIONS_KV_CACHE_TABLES_ARGS_H
#include "abi/shared.h"
#include "operations/common/boundaries_args.h"
#include "operations/kv_cache/args.h"

// Kinds of errors of append_to_cache, as the record has them.
#define CACHE_BAD_SLOT 0u
#define CACHE_BAD_COUNT 1u
#define CACHE_BAD_START 2u
#define CACHE_BAD_LENGTH 3u
#define CACHE_BAD_PAGE 4u
// Of copy_pages.
#define CACHE_BAD_SOURCE 0u
#define CACHE_BAD_TARGET 1u

// Rounds of the passes that find the last of several.
#define CACHE_CLEARS 0u
#define CACHE_CLAIMS 1u
#define CACHE_LISTS 2u

// Tokens and sequences, at most, whose places one work-group finds.
#define CACHE_FEW 256u

TESSERA_ABI_BEGIN

struct CachePlacesArgs {
  u32 tokens;
  u32 list;  // entries of the list of places: tokens, rounded up to a multiple of 4
  u32 pages;
  u32 page_size;
  u32 mapped;  // not 0: slot_mapping says the places, else the tables
  u32 slots_offset;
  u32 sequences;  // at most
  u32 pages_per_sequence;
  u32 tables_offset;
  u32 tables_stride;  // from one sequence to the next
  u32 lengths_offset;
  u32 boundaries;  // where the offsets of sequences begin in scratch
  u32 counted;     // not 0: num_seqs says how many sequences there are
  u32 count_offset;
  u32 errors;
  u32 round;  // of last
};

// Of few; the result and the errors of the boundaries are nothing.
struct CacheFewArgs {
  STRUCT(BoundariesArgs) boundaries;
  STRUCT(CachePlacesArgs) places;
};

// The same, and the rows that are copied to the places.
struct CacheFewRowsArgs {
  STRUCT(CacheFewArgs) few;
  STRUCT(CacheCopyArgs) copy;
};

// The lists of a call in scratch, each of `pairs` entries: pages that are staged, pages that are
// copied at once, targets of all pairs, targets of staged pages.
struct CachePairsArgs {
  u32 pairs;
  u32 source_pages;  // of the pools
  u32 target_pages;
  u32 one_pool;  // not 0: sources and targets are pages of one pool
  u32 owners;    // where the words of pages begin in scratch
  u32 sources_offset;
  u32 targets_offset;
  u32 errors;
  u32 round;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_KV_CACHE_TABLES_ARGS_H
