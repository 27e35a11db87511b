// SPDX-License-Identifier: Apache-2.0
// Part of attention/cooperative/backward, REGISTERS=0: pairs are made in local memory, where a lane has whole rows or
// parts of them; all policies.
#ifndef TESSERA_ATTENTION_COOPERATIVE_BACKWARD_LOCAL_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_BACKWARD_LOCAL_GLSL
#include "attention/cooperative/backward_products.glsl"

// A lane has rows lane % ROWS + LANES i of the sub-group, of which it has pairs 8 (part + ATTN_BACK_PARTS g) + 0..7.
#define ITEM_ROW(i) (lane % ROWS + LANES * (i))
#define ITEM_COLUMN(g) ((lane / ROWS + ATTN_BACK_PARTS * (g)) * 8u)

#if !OWN_KEYS
Numbers own_numbers[ATTN_BACK_ITEM_ROWS];

void load_own_numbers() {
  [[unroll]] for (uint i = 0u; i < ATTN_BACK_ITEM_ROWS; ++i) {
    const int row = own_row + int(ITEM_ROW(i));
    own_numbers[i] = numbers_of(raw_row(row), row);
  }
}
#endif

#if POLICY
// In place: q.k to the weight, do.v to the gradient of the logit. Once in the text, for it is long.
void apply_policies(int first) {
  [[dont_unroll]] for (uint n = 0u; n < ATTN_BACK_ITEM_ROWS * ATTN_BACK_ITEM_GROUPS * 8u; ++n) {
    const uint own = ITEM_ROW(n / (8u * ATTN_BACK_ITEM_GROUPS));
    const uint column = ITEM_COLUMN(n / 8u % ATTN_BACK_ITEM_GROUPS) + n % 8u;
#if OWN_KEYS
    const int row = first + int(column), key = own_row + int(own);
#else
    const int row = own_row + int(own), key = first + int(column);
#endif
    const uint at = place + own * ATTN_BACK_PLACE_STRIDE + column / 4u;
    const Pair pair = pair_of(load_row(row), key, uintBitsToFloat(memory[at][column % 4u]),
                              uintBitsToFloat(memory[at + ATTN_BACK_PLACE_AREA][column % 4u]));
    memory[at][column % 4u] = floatBitsToUint(pair.weight);
    memory[at + ATTN_BACK_PLACE_AREA][column % 4u] = floatBitsToUint(pair.logit);
  }
}
#endif

// The same, for four pairs of a row whose keys are an interval. Of each pair its query row's numbers.
void differentiate_four(inout vec4 score, inout vec4 gradient, vec4 shift, vec4 delta, ivec4 key, ivec4 begin,
                        ivec4 end) {
  vec4 x = score * inner, slope = vec4(1.0);
  if (CAPPED != 0u) {
    [[unroll]] for (int c = 0; c < 4; ++c) {
      const float t = saturating_tanh(x[c]);
      x[c] = outer * t;
      slope[c] = 1.0 - t * t;
    }
  }
  const vec4 weight = exp2(x - shift), logit = weight * (gradient - delta) * slope;
  [[unroll]] for (int c = 0; c < 4; ++c) {
    const bool seen = key[c] >= begin[c] && key[c] < end[c];
    score[c] = seen ? weight[c] : 0.0;
    gradient[c] = seen ? logit[c] : 0.0;
  }
}

#if OWN_KEYS
#define FOUR(type, elements, at) type(elements[at], elements[(at) + 1u], elements[(at) + 2u], elements[(at) + 3u])
#endif

void differentiate(int first, uint stage) {
  [[unroll]] for (uint i = 0u; i < PAIR_MATRICES; ++i) {
    const uint at = place + i / ATTN_BACK_PAIR_TILES * MATRIX_M * ATTN_BACK_PLACE_STRIDE +
                    i % ATTN_BACK_PAIR_TILES * MATRIX_N / 4u;
    coopMatStore(score[i], memory, at, ATTN_BACK_PLACE_STRIDE, kRowMajor);
    coopMatStore(gradient[i], memory, at + ATTN_BACK_PLACE_AREA, ATTN_BACK_PLACE_STRIDE, kRowMajor);
  }
  subgroupBarrier();
#if POLICY
  const bool by_intervals = (args.policy.features & POLICY_PAIRS) == 0u;
  if (!by_intervals) apply_policies(first);
#else
  const bool by_intervals = true;
#endif
  uvec2 weight[ATTN_BACK_ITEM_ROWS * ATTN_BACK_ITEM_GROUPS * 2u];
  uvec2 logit[ATTN_BACK_ITEM_ROWS * ATTN_BACK_ITEM_GROUPS * 2u];
  [[unroll]] for (uint i = 0u; i < ATTN_BACK_ITEM_ROWS; ++i) {
    [[unroll]] for (uint n = 0u; n < ATTN_BACK_ITEM_GROUPS * 2u; ++n) {
      const uint column = ITEM_COLUMN(n / 2u) + n % 2u * 4u;
      const uint at = place + ITEM_ROW(i) * ATTN_BACK_PLACE_STRIDE + column / 4u;
      vec4 s = uintBitsToFloat(memory[at]), x = uintBitsToFloat(memory[at + ATTN_BACK_PLACE_AREA]);
      if (by_intervals) {
#if OWN_KEYS
        const uint of_row = stage * 2u * STEP + column;
        differentiate_four(s, x, FOUR(vec4, numbers, of_row), FOUR(vec4, numbers, of_row + STEP),
                           ivec4(own_row + int(ITEM_ROW(i))), FOUR(ivec4, intervals, of_row),
                           FOUR(ivec4, intervals, of_row + STEP));
#else
        const Numbers own = own_numbers[i];
        differentiate_four(s, x, vec4(own.shift), vec4(own.delta), ivec4(first + int(column)) + ivec4(0, 1, 2, 3),
                           own.keys.xxxx, own.keys.yyyy);
#endif
      }
      weight[i * ATTN_BACK_ITEM_GROUPS * 2u + n] = uvec2(narrow_pair(s.xy), narrow_pair(s.zw));
      logit[i * ATTN_BACK_ITEM_GROUPS * 2u + n] = uvec2(narrow_pair(x.xy), narrow_pair(x.zw));
    }
  }
  // Weights lie where scores did: all lanes must have read theirs.
  subgroupBarrier();
  [[unroll]] for (uint i = 0u; i < ATTN_BACK_ITEM_ROWS; ++i) {
    [[unroll]] for (uint g = 0u; g < ATTN_BACK_ITEM_GROUPS; ++g) {
      const uint from = (i * ATTN_BACK_ITEM_GROUPS + g) * 2u;
      const uint to = place + ITEM_ROW(i) * ATTN_BACK_PLACE_STRIDE + ITEM_COLUMN(g) / 8u;
#if OWN_KEYS
      memory[to] = uvec4(weight[from], weight[from + 1u]);
#endif
      memory[to + ATTN_BACK_PLACE_AREA] = uvec4(logit[from], logit[from + 1u]);
    }
  }
  subgroupBarrier();
}

COOPERATIVE_LEFT pairs_at(uint at, uint r, uint j) {
  COOPERATIVE_LEFT pairs;
  coopMatLoad(pairs, memory, at + r * MATRIX_M * ATTN_BACK_PLACE_STRIDE + j * MATRIX_K / 8u, ATTN_BACK_PLACE_STRIDE,
              kRowMajor);
  return pairs;
}
COOPERATIVE_LEFT weights(uint r, uint j) { return pairs_at(place, r, j); }
COOPERATIVE_LEFT logit_gradients(uint r, uint j) { return pairs_at(place + ATTN_BACK_PLACE_AREA, r, j); }

void take_step(int first, uint stage) {
  take_products(stage);
  differentiate(first, stage);
  add_rows(stage);
}

#endif  // TESSERA_ATTENTION_COOPERATIVE_BACKWARD_LOCAL_GLSL
