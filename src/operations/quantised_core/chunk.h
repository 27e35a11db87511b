// SPDX-License-Identifier: Apache-2.0
// Where 32 weights of a row lie, and what their codes mean: text for OpenCL C and GLSL. A kernel
// brings ARGS, LOAD_WEIGHT_BYTE(at), LOAD_SCALE(at, type), LOAD_ZERO_BYTE(at) and
// LOAD_ZERO_HALF_BYTE(at), and the constant FORMAT.
#ifndef TESSERA_OPERATIONS_QUANTISED_CORE_CHUNK_H
#define TESSERA_OPERATIONS_QUANTISED_CORE_CHUNK_H

// Constants of a launch.
#define QUANT_CONSTANTS()                                                            \
  const bool nibbles = TO_U32(FORMAT) % 2u != 0u;                                    \
  const bool blocks = TO_U32(FORMAT) / 2u != 0u; /* with scales of their own */      \
  const u32 words = nibbles ? 4u : 8u;                                               \
  const u32 features = ARGS(features), k = ARGS(k);                                  \
  /* Codes in two's complement become codes from 0 on. */                            \
  const bool is_signed = (features & QUANT_SIGNED) != 0u;                            \
  const u32 flip = is_signed ? (nibbles ? 0x88888888u : 0x80808080u) : 0u;           \
  const u32 middle = is_signed || FORMAT == QUANT_Q4_0 ? (nibbles ? 8u : 128u) : 0u; \
  const u32 chunks = (k + TO_U32(QUANT_CHUNK) - 1u) / TO_U32(QUANT_CHUNK);

// The first byte of a chunk, its scale, and its zero among codes from 0 on.
#define QUANT_FIND_CHUNK(column, chunk, at, scale, zero)                                      \
  at = ARGS(weight_offset) + (column)*ARGS(weight_row);                                       \
  if (blocks) {                                                                               \
    at += (chunk) * (2u + 4u * words);                                                        \
    scale = quant_scale(quant_half(LOAD_WEIGHT_BYTE(at) | LOAD_WEIGHT_BYTE(at + 1u) << 8));   \
    at += 2u;                                                                                 \
    zero = TO_FLOAT(middle);                                                                  \
  } else {                                                                                    \
    at += (chunk)*4u * words;                                                                 \
    const u32 group = (chunk) / ARGS(group);                                                  \
    scale = quant_scale(                                                                      \
        LOAD_SCALE(ARGS(scale_offset) + (column)*ARGS(scale_row) + group, ARGS(scale_type))); \
    u32 code = middle;                                                                        \
    if ((features & QUANT_ZEROS) != 0u) {                                                     \
      const u32 of_zero = ARGS(zero_offset) + (column)*ARGS(zero_row) + group;                \
      code = (nibbles ? LOAD_ZERO_HALF_BYTE(of_zero) : LOAD_ZERO_BYTE(of_zero)) ^ middle;     \
    }                                                                                         \
    zero = TO_FLOAT(code);                                                                    \
  }

#endif  // TESSERA_OPERATIONS_QUANTISED_CORE_CHUNK_H
