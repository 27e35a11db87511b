// SPDX-License-Identifier: Apache-2.0
// Local memory of recurrence/mma in bytes, from WG_X and the names of mma.def: read by C++ and
// OpenCL C.
#ifndef TESSERA_OPERATIONS_RECURRENCE_CORE_MMA_GEOMETRY_H
#define TESSERA_OPERATIONS_RECURRENCE_CORE_MMA_GEOMETRY_H

#define RECUR_MMA_CHUNK 16u            // tokens that products take at once
#define RECUR_MMA_COLUMNS (WG_X / 2u)  // of a state: 16 for each warp
#define RECUR_MMA_CHUNKS (TOKENS / RECUR_MMA_CHUNK)

// Rows are whole lines of 128 bytes, as lib/mma/tiles.clh wants them.
#define RECUR_MMA_LINES(bytes) (((bytes) + 127u) / 128u * 128u)
#define RECUR_MMA_KEY_PITCH RECUR_MMA_LINES(2u * KEY_DIM)
#define RECUR_MMA_VALUE_PITCH RECUR_MMA_LINES(2u * RECUR_MMA_COLUMNS)
#define RECUR_MMA_DECAY_PITCH RECUR_MMA_LINES((WIDE_DECAYS ? 4u : 2u) * KEY_DIM)
#define RECUR_MMA_KEY_BYTES (TOKENS * RECUR_MMA_KEY_PITCH)
#define RECUR_MMA_VALUE_BYTES (TOKENS * RECUR_MMA_VALUE_PITCH)
#define RECUR_MMA_DECAY_BYTES (KEY_DECAYS ? TOKENS * RECUR_MMA_DECAY_PITCH : 0u)
// A stage: values, keys, decays; queries, where there are outputs.
#define RECUR_MMA_KEYS RECUR_MMA_VALUE_BYTES
#define RECUR_MMA_DECAYS (RECUR_MMA_KEYS + RECUR_MMA_KEY_BYTES)
#define RECUR_MMA_QUERIES (RECUR_MMA_DECAYS + RECUR_MMA_DECAY_BYTES)
#define RECUR_MMA_STAGE_BYTES(outputs) (RECUR_MMA_QUERIES + ((outputs) ? RECUR_MMA_KEY_BYTES : 0u))
// Behind the stages: tiles of levels, of which the first lies where decays of the storage type
// were.
#define RECUR_MMA_LEVELS 4u
#define RECUR_MMA_LEVEL_TILES(outputs) \
  ((outputs) && KEY_DECAYS ? RECUR_MMA_LEVELS - (WIDE_DECAYS ? 0u : 1u) : 0u)
#define RECUR_MMA_LEVEL_START(outputs) (STAGES * RECUR_MMA_STAGE_BYTES(outputs))
// Then the weights of the values of each chunk; factors of key dims over chunks; numbers of tokens:
// log decays of two blocks, factors, those since the beginning of a chunk, and those to its end;
// the factors of key dims over a span; flags.
#define RECUR_MMA_WEIGHTS(outputs) \
  (RECUR_MMA_LEVEL_START(outputs) + RECUR_MMA_LEVEL_TILES(outputs) * RECUR_MMA_KEY_BYTES)
#define RECUR_MMA_FACTORS(outputs) \
  (RECUR_MMA_WEIGHTS(outputs) + ((outputs) ? 2u * RECUR_MMA_CHUNK * TOKENS : 0u))
#define RECUR_MMA_NUMBERS(outputs) \
  (RECUR_MMA_FACTORS(outputs) + (KEY_DECAYS ? 4u * RECUR_MMA_CHUNKS * KEY_DIM : 0u))
#define RECUR_MMA_TOTALS(outputs) (RECUR_MMA_NUMBERS(outputs) + 20u * TOKENS)
#define RECUR_MMA_FLAGS(outputs) (RECUR_MMA_TOTALS(outputs) + ((outputs) ? 0u : 4u * KEY_DIM))
#define RECUR_MMA_LOCAL_BYTES(outputs) (RECUR_MMA_FLAGS(outputs) + 16u)

#define RECUR_MMA_VALID                                                                        \
  (WG_X % 32u == 0u && WG_X >= 32u && WG_X <= 256u && TOKENS % 16u == 0u && TOKENS >= 16u &&   \
   TOKENS <= 64u && (STAGES == 1u || STAGES == 2u) && KEY_DIM % 16u == 0u && KEY_DIM >= 16u && \
   KEY_DIM <= 256u)

// In scratch, in floats: what a span makes of an empty state, a number an item at a time; the
// factors that its key dims have for a state before it, and whether that does not say all of it.
#define RECUR_MMA_SPAN_STATE(unit_of_span, i) \
  (ARGS(span_states) + ((unit_of_span) * (KEY_DIM / 2u) + (i)) * WG_X)
#define RECUR_MMA_SPAN_FACTORS(unit_of_span) (ARGS(span_factors) + (unit_of_span) * (KEY_DIM + 4u))

// Backward: of all chunks of all sequences, one behind the other with a chunk to spare for each,
// the first of a sequence whose first token is `at` of those of all batch entries.
#define RECUR_MMA_FIRST_CHUNK(at, sequence) ((at) / RECUR_MMA_CHUNK + (sequence))

// recurrence/mma/gradients in local memory, behind what a block of one chunk takes: gradients of
// outputs; the state before the chunk and its gradient behind it, a row for each value dim; scores
// of values and gradients of outputs, a row of floats for each value; what a state leaves of the
// gradient of a decay, for each key dim. Where the state was come products of both with rows of
// tokens, a row of floats for each token.
#define RECUR_MMA_STATE_BYTES (VALUE_DIM * RECUR_MMA_KEY_PITCH)
#define RECUR_MMA_PRODUCT_BYTES (4u * RECUR_MMA_CHUNK * KEY_DIM)
#define RECUR_MMA_DOUTPUT ((RECUR_MMA_LOCAL_BYTES(1u) + 127u) / 128u * 128u)
#define RECUR_MMA_STATE (RECUR_MMA_DOUTPUT + RECUR_MMA_VALUE_BYTES)
#define RECUR_MMA_DSTATE                                                   \
  (RECUR_MMA_STATE + (RECUR_MMA_STATE_BYTES > 2u * RECUR_MMA_PRODUCT_BYTES \
                          ? RECUR_MMA_STATE_BYTES                          \
                          : 2u * RECUR_MMA_PRODUCT_BYTES))
#define RECUR_MMA_SCORES (RECUR_MMA_DSTATE + RECUR_MMA_STATE_BYTES)
#define RECUR_MMA_LEAVES (RECUR_MMA_SCORES + 8u * RECUR_MMA_CHUNK * RECUR_MMA_CHUNK)
#define RECUR_MMA_GRADIENT_BYTES (RECUR_MMA_LEAVES + 4u * KEY_DIM)

#endif  // TESSERA_OPERATIONS_RECURRENCE_CORE_MMA_GEOMETRY_H
