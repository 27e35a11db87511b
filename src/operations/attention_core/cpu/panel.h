// SPDX-License-Identifier: Apache-2.0
// What the geometries of the CPU kernels have in common; OpenCL C and the host read it.
#ifndef TESSERA_OPERATIONS_ATTENTION_CPU_PANEL_H
#define TESSERA_OPERATIONS_ATTENTION_CPU_PANEL_H

#define ATTN_CPU_ROUND_UP(n, multiple) (((n) + (multiple)-1) / (multiple) * (multiple))
// A row of n floats or more that is an odd number of 64-byte lines: such rows share few cache sets.
#define ATTN_CPU_SPREAD_ROW(n) ((((n) + 15) / 16 | 1) * 16)

// A panel is ATTN_LANES rows, one per lane of VECTORS vectors.
#define ATTN_LANES (VECTORS * VECTOR_WIDTH)

// The factors of the products lie in words of 32 bits: one float or, with BF16_DOT, two bfloat16
// whose products are summed up. How many words some factors take.
#define ATTN_WORD_FACTORS (BF16_DOT ? 2 : 1)
#define ATTN_WORDS(factors) (((factors) + ATTN_WORD_FACTORS - 1) / ATTN_WORD_FACTORS)

#endif  // TESSERA_OPERATIONS_ATTENTION_CPU_PANEL_H
