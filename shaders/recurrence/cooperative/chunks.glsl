// SPDX-License-Identifier: Apache-2.0
// A chunk of a sequence in a head: where it is, its keys, decays and, with RECUR_OUTPUTS=1, queries in registers, and rows of
// them, decayed, in local memory. An item has eight key dims of PART tokens, a part of the chunk.
//
// All factors are products of factors of tokens, none of which is above 1 here: nothing overflows, and what vanishes is
// nothing. Chunks with others, or with what is not finite, are marked, and their sequence is taken step by step afterwards.
#ifndef TESSERA_RECURRENCE_COOPERATIVE_CHUNKS_GLSL
#define TESSERA_RECURRENCE_COOPERATIVE_CHUNKS_GLSL
#define STORAGE16 1
#include "lib/cooperative/elements.glsl"
#include "lib/typed.glsl"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/cooperative/cooperative.def"
#include "operations/recurrence_core/cooperative/geometry.h"
#include "lib/cooperative/products.glsl"
#include "recurrence/cooperative/scratch.glsl"

#ifndef PART
#define PART RECUR_COOP_PART
#endif
#define PARTS (TOKENS / PART)
#define EIGHTS RECUR_COOP_EIGHTS
#define SIXTEENS RECUR_COOP_SIXTEENS
#define KEY_STRIDE RECUR_COOP_KEY_STRIDE
#define VALUE_STRIDE RECUR_COOP_VALUE_STRIDE

layout(std430, binding = 0) readonly buffer Queries { uvec4 query_eights[]; };
layout(std430, binding = 1) readonly buffer Keys { uvec4 key_eights[]; };
layout(std430, binding = 2) readonly buffer Values { uvec4 value_eights[]; };
TYPED_INPUT(g, 3)
layout(std430, binding = 3) readonly buffer GateEights { uvec4 g_eights[]; };
TYPED_INPUT(gamma, 4)
layout(std430, binding = 5) readonly buffer DecayEights { uvec4 gk_eights[]; };
layout(std430, binding = 5) readonly buffer DecayVectors { vec4 gk_vectors[]; };

shared uvec4 memory[RECUR_AREA];
shared vec4 totals[RECUR_COOP_TOTALS(PART)];  // factors of key dims over parts

uint item, lane;
uint chunk, unit;   // of all in scratch; the sequence in the head
uint first, count;  // steps of the chunk
uint eight, part;   // of the item; behind the last part, it has none
bool odd = false;   // something here is not for matrices
vec4 factor[2u * PART];
uvec4 key[PART];
#if RECUR_OUTPUTS
uvec4 query[PART];
#endif

// Whether the work-group has a chunk, which may have no steps.
bool find_chunk() {
  lane = gl_SubgroupInvocationID;
  item = gl_SubgroupID * LANES + lane;
  chunk = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  const uint slot = chunk / args.heads;
  head = chunk % args.heads;
  if (slot >= args.segment || args.sequences == 0u) return false;
  sequence = 0u;
  // The last sequence that begins before or with the chunk.
  [[dont_unroll]] for (uint step = 1u << findMSB(args.sequences); step > 0u; step /= 2u) {
    const uint other = sequence + step;
    if (other >= args.sequences) continue;
    const uint its_begin = RECUR_HAS(RECUR_PACKED) ? boundary(other) : other * args.tokens;
    if (RECUR_COOP_FIRST_CHUNK(its_begin, other) <= slot) sequence = other;
  }
  find_sequence();
  unit = sequence * args.heads + head;
  first = (slot - first_slot()) * TOKENS;
  count = first < end - begin ? min(end - begin - first, TOKENS) : 0u;
  eight = item % EIGHTS;
  part = item / EIGHTS;
  return true;
}

// The row of step 0 of the sequence, and from one to the next, as numbers that wrap around.
uint first_row(RecurRows rows) {
  return rows.offset + batch * rows.batch + head * rows.head + (RECUR_HAS(RECUR_REVERSE) ? end - 1u : begin) * rows.token;
}
uint row_step(RecurRows rows) { return RECUR_HAS(RECUR_REVERSE) ? 0u - rows.token : rows.token; }

// An item's totals; where key dims decay alike, all have one.
#define TOTAL(part) (part) * RECUR_COOP_TOTAL_STRIDE + (KEY_DECAYS != 0u ? 2u * eight : 0u)

// Below -104 nothing of a float is left; functions of devices need not say so.
vec4 factors_of(vec4 log_decays) {
  odd = odd || !all(lessThanEqual(log_decays, vec4(0.0)));
  return mix(exp(log_decays), vec4(0.0), lessThan(log_decays, vec4(-104.0)));
}

// The item's keys, factors and queries, and what a part leaves of a state.
void load_part() {
  const uint at = first + part * PART;
  float of_head = float(head) * args.slope;
  if (RECUR_HAS(RECUR_GAMMA))
    of_head += load_gamma_steps(args.gamma_offset + head * args.gamma_stride, 0u, 1u, args.types >> RECUR_TYPE_GAMMA & 3u).x;
  const bool of_gk = RECUR_HAS(RECUR_GK);
  const RecurRows decays = of_gk ? args.gk : args.g;
  const uint key_step = row_step(args.key), key_at = first_row(args.key) + at * key_step;
  const uint gate_step = row_step(args.g), gate_at = first_row(args.g) + at * gate_step;
  const uint decay_step = row_step(decays), decay_at = first_row(decays) + at * decay_step + 8u * eight;
#if RECUR_OUTPUTS
  const uint query_step = row_step(args.query), query_at = first_row(args.query) + at * query_step;
#endif
  [[unroll]] for (uint t = 0u; t < PART; ++t) {
    vec4 low = vec4(0.0), high = low;
    key[t] = uvec4(0u);
#if RECUR_OUTPUTS
    query[t] = uvec4(0u);
#endif
    if (part * PART + t < count) {
      key[t] = key_eights[(key_at + t * key_step) / 8u + eight];
#if RECUR_OUTPUTS
      query[t] = query_eights[(query_at + t * query_step) / 8u + eight];
#endif
      float of_token = of_head;
      if (RECUR_HAS(RECUR_GATE)) of_token += load_g_steps(gate_at + t * gate_step, 0u, 1u, args.types >> RECUR_TYPE_G & 3u).x;
      low = high = vec4(of_token);
      if (KEY_DECAYS != 0u) {
        const uint from = decay_at + t * decay_step;
        if (WIDE_DECAYS != 0u) {
          low += of_gk ? gk_vectors[from / 4u] : g_as_vectors[from / 4u];
          high += of_gk ? gk_vectors[from / 4u + 1u] : g_as_vectors[from / 4u + 1u];
        } else {
          const uvec4 words = of_gk ? gk_eights[from / 8u] : g_eights[from / 8u];
          low += widen4(words.xy);
          high += widen4(words.zw);
        }
      }
    }
    factor[2u * t] = low;
    factor[2u * t + 1u] = high;
  }
  vec4 low = vec4(1.0), high = low;
  [[unroll]] for (uint t = 0u; t < PART; ++t) {
    odd = odd || has_nonfinite(key[t]);
#if RECUR_OUTPUTS
    odd = odd || has_nonfinite(query[t]);
#endif
    factor[2u * t] = factors_of(factor[2u * t]);
    factor[2u * t + 1u] = KEY_DECAYS != 0u ? factors_of(factor[2u * t + 1u]) : factor[2u * t];
    low *= factor[2u * t];
    high *= factor[2u * t + 1u];
  }
  totals[TOTAL(part)] = low;
  totals[TOTAL(part) + 1u] = high;
}

// What is not finite is marked, and need not stay so.
#if DTYPE == DTYPE_BF16
uint narrow_finite(vec2 x) {
  uvec2 bits = floatBitsToUint(x);
  bits += 0x7fffu + (bits >> 16u & 1u);
  return bits.x >> 16u | bits.y & 0xffff0000u;
}
#else
#define narrow_finite narrow_pair
#endif

void store_eight(uint t, uvec4 elements, vec4 low, vec4 high) {
  low *= widen4(elements.xy);
  high *= widen4(elements.zw);
  memory[(part * PART + t) * KEY_STRIDE + eight] =
      uvec4(narrow_finite(low.xy), narrow_finite(low.zw), narrow_finite(high.xy), narrow_finite(high.zw));
}

// name(to): the chunk's rows of value dims, one for each token, zeros behind the last.
#define COPY_ROWS(name, rows, eights)                                                                                  \
  void name(uint to) {                                                                                                 \
    const uint step = row_step(rows), at = first_row(rows) + first * step, vectors = VALUE_DIM / 8u;                   \
    [[dont_unroll]] for (uint i = item; i < TOKENS * vectors; i += WG_X) {                                             \
      const uint t = i / vectors, vector = i % vectors;                                                                \
      uvec4 x = uvec4(0u);                                                                                             \
      if (t < count) x = eights[(at + t * step) / 8u + vector];                                                        \
      odd = odd || has_nonfinite(x);                                                                                   \
      memory[to + t * VALUE_STRIDE + vector] = x;                                                                      \
    }                                                                                                                  \
  }
COPY_ROWS(copy_values, args.value, value_eights)

#endif  // TESSERA_RECURRENCE_COOPERATIVE_CHUNKS_GLSL
