// SPDX-License-Identifier: Apache-2.0
// How squares of an operand get to registers, in the text that OpenCL C and GLSL share. A kernel
// brings HELD(i), vectors in registers.
#ifndef TESSERA_OPERATIONS_MATMUL_CORE_FETCH_H
#define TESSERA_OPERATIONS_MATMUL_CORE_FETCH_H

// A square of four rows (or columns) from `row` on by four terms from `term` on, to HELD(to) to
// HELD(to + 3); what is outside is 0. by_terms, by_rows: vectors along that axis lie at multiples
// of four.
#define MATMUL_FETCH(LOAD_VECTOR, LOAD_STEPS, type, at, row, rows, row_step, term, terms,   \
                     term_step, by_terms, by_rows, to)                                      \
  if ((by_terms) && term + 4u <= terms) {                                                   \
    UNROLL for (u32 j = 0u; j < 4u; ++j) {                                                  \
      HELD(to + j) = row + j < rows ? LOAD_VECTOR(at + (row + j) * row_step + term, type)   \
                                    : MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);                  \
    }                                                                                       \
  } else if ((by_rows) && row + 4u <= rows) {                                               \
    FLOAT4 line0 = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), line1 = line0, line2 = line0,       \
           line3 = line0;                                                                   \
    if (term < terms) line0 = LOAD_VECTOR(at + term * term_step + row, type);               \
    if (term + 1u < terms) line1 = LOAD_VECTOR(at + (term + 1u) * term_step + row, type);   \
    if (term + 2u < terms) line2 = LOAD_VECTOR(at + (term + 2u) * term_step + row, type);   \
    if (term + 3u < terms) line3 = LOAD_VECTOR(at + (term + 3u) * term_step + row, type);   \
    HELD(to) = MAKE_FLOAT4(line0.x, line1.x, line2.x, line3.x);                             \
    HELD(to + 1u) = MAKE_FLOAT4(line0.y, line1.y, line2.y, line3.y);                        \
    HELD(to + 2u) = MAKE_FLOAT4(line0.z, line1.z, line2.z, line3.z);                        \
    HELD(to + 3u) = MAKE_FLOAT4(line0.w, line1.w, line2.w, line3.w);                        \
  } else {                                                                                  \
    UNROLL for (u32 j = 0u; j < 4u; ++j) {                                                  \
      FLOAT4 line = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);                                    \
      if (row + j < rows) {                                                                 \
        const u32 first = at + (row + j) * row_step + term * term_step;                     \
        if (term < terms) line = LOAD_STEPS(first, term_step, min(terms - term, 4u), type); \
      }                                                                                     \
      HELD(to + j) = line;                                                                  \
    }                                                                                       \
  }

#endif  // TESSERA_OPERATIONS_MATMUL_CORE_FETCH_H
