// SPDX-License-Identifier: Apache-2.0
// Where a token of a sequence lies in a pool of pages. Text for OpenCL C and GLSL, which say how
// PAGES(name) and TABLE_VALUE(n) are read.
#ifndef TESSERA_OPERATIONS_ATTENTION_PAGES_H
#define TESSERA_OPERATIONS_ATTENTION_PAGES_H
#include "operations/attention_core/core/pages_args.h"

// The number of a token's page among those of its sequence.
FUNCTION u32 page_number(PAGES_PARAMETERS u32 token) {
  return mul_hi(2u * token, PAGES(page_factor)) >> PAGES(page_shift);
}

// What the table says; numbers of no page are beyond the pool, negative ones too.
FUNCTION u32 page_in_table(PAGES_PARAMETERS u32 sequence, u32 number) {
  return TO_U32(
      TABLE_VALUE(PAGES(offset) + sequence * PAGES(stride_sequence) + number * PAGES(stride_page)));
}

FUNCTION bool page_is_there(PAGES_PARAMETERS u32 sequence, u32 token) {
  return page_in_table(PAGES_ARGUMENTS sequence, page_number(PAGES_ARGUMENTS token)) < PAGES(pages);
}

#endif  // TESSERA_OPERATIONS_ATTENTION_PAGES_H
