// SPDX-License-Identifier: Apache-2.0
// The tokens of a span, block after block: of forward.h, with outputs, and of spans.h, of which
// SCAN_MAKES_OUTPUTS tells. While a work-group takes the steps of a block, an item asks for what it
// prepares of the next one: steps of its channel's tokens `part`, `part` + WG_Y, …, and elements of
// b and c. Text for OpenCL C and GLSL.

// Where there is no token of a block or no channel, what is asked for is that of the last one, and
// is not used.
#if SCAN_MAKES_OUTPUTS
#define SCAN_OF_OUTPUTS(text) text
#define SCAN_OF_SPANS(text)
#define SCAN_ASK_C(i, at) \
  asked_c[i] = LOAD_C_BITS(c_at + (at)*c_token + SCAN_STATE_OF(i) * c_state);
#define SCAN_PUT_C(i) \
  FACTOR_ELEMENT(SCAN_ELEMENT_OF(i, 1u)) = is_state ? SCAN_WIDEN(asked_c[i]) : 0.0f;
#define SCAN_PUT_PRODUCT(i, x) PRODUCT_OF_PART(i, part) = x;
#define SCAN_LEAVE                                                                   \
  if (present && SCAN_HAS(SCAN_FINAL)) {                                             \
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {                                   \
      if (SCAN_LEFT(f) > 0u)                                                         \
        STORE_FINAL(state[f], SCAN_STATE(final_state, SCAN_FIRST(f)), SCAN_LEFT(f)); \
    }                                                                                \
  }
#else
#define SCAN_OF_OUTPUTS(text)
#define SCAN_OF_SPANS(text) text
#define SCAN_ASK_C(i, at)
#define SCAN_PUT_C(i)
#define SCAN_PUT_PRODUCT(i, x)
#define SCAN_LEAVE \
  {}
#endif
#define SCAN_ASK(block)                                                           \
  {                                                                               \
    UNROLL for (u32 i = 0u; i < SCAN_OWN; ++i) {                                  \
      const u32 at = min((block) + SCAN_TOKEN(i), last - 1u);                     \
      asked_delta[i] = LOAD_DELTA_BITS(delta_at + at * delta_token);              \
      asked_u[i] = LOAD_U_BITS(u_at + at * u_token);                              \
    }                                                                             \
    UNROLL for (u32 i = 0u; i < SCAN_TAKEN; ++i) {                                \
      const u32 at = min((block) + SCAN_TOKEN_OF(i), last - 1u);                  \
      asked_b[i] = LOAD_B_BITS(b_at + at * b_token + SCAN_STATE_OF(i) * b_state); \
      SCAN_ASK_C(i, at)                                                           \
    }                                                                             \
  }
// A sequence's first token finds its initial state; its last one leaves the final state.
#define SCAN_ENTER                                                                \
  {                                                                               \
    SCAN_OF_SPANS(counts = 0.0f;)                                                 \
    if (present) {                                                                \
      UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) SCAN_TAKE_INITIAL(state[f], f) \
    }                                                                             \
  }

// Of steps, in units of log(2); whether the state before the span counts behind it.
SCAN_OF_SPANS(float sum = 0.0f;)
SCAN_OF_SPANS(float counts = 1.0f;)
const bool softplus = SCAN_HAS(SCAN_SOFTPLUS), full = ARGS(states) == SCAN_STATES;
const u32 states = ARGS(states);
// Rows of the item's channel; arguments are read before anything is stored, behind which they would
// be read again.
const u32 near = min(column, channels - 1u) + branch * channels;
const u32 delta_at = SCAN_ROW_OF(delta, near), delta_token = ARGS(delta.token);
const u32 u_at = SCAN_ROW_OF(u, near), u_token = ARGS(u.token);
const u32 b_at = SCAN_FACTOR(b, 0u, 0u), b_token = ARGS(b.token), b_state = ARGS(b.state);
u32 asked_delta[SCAN_OWN], asked_u[SCAN_OWN], asked_b[SCAN_TAKEN];
#if SCAN_MAKES_OUTPUTS
const bool has_d = SCAN_HAS(SCAN_D), has_z = SCAN_HAS(SCAN_Z);
const u32 c_at = SCAN_FACTOR(c, 0u, 0u), c_token = ARGS(c.token), c_state = ARGS(c.state);
const u32 z_at = SCAN_ROW_OF(z, near), z_token = ARGS(z.token);
const u32 result_at = SCAN_ROW_OF(result, near), result_token = ARGS(result.token);
u32 asked_c[SCAN_TAKEN], asked_z[SCAN_OWN];
// SPIR-V may not name a constant of 16 bits, which a plain 0 would become.
const float nothing = TO_FLOAT(ARGS(features) >> 31);
float skip = 0.0f;
if (has_d) skip = LOAD_D(ARGS(d_offset) + near * ARGS(d_stride));
#endif
// A batch entry's first state is asked for beside its first operands.
if (!SCAN_HAS(SCAN_PACKED) && first == 0u && first < last) SCAN_ENTER
if (first < last) SCAN_ASK(first)
for (u32 block = first; UNIFORM(block < last); block += BLOCK) {
  float wide[SCAN_OWN], own_u[SCAN_OWN];
  UNROLL for (u32 i = 0u; i < SCAN_OWN; ++i) {
    wide[i] = SCAN_WIDEN(asked_delta[i]) + bias;
    own_u[i] = SCAN_WIDEN(asked_u[i]);
  }
  if (softplus) {
    UNROLL for (u32 i = 0u; i < SCAN_OWN; ++i) wide[i] = space_softplus(wide[i]);
  }
  UNROLL for (u32 i = 0u; i < SCAN_OWN; ++i) {
    if (SCAN_IS_TOKEN(i))
      STEP(SCAN_TOKEN(i)) = MAKE_FLOAT2(wide[i] * SPACE_LOG2_E, wide[i] * own_u[i]);
  }
  UNROLL for (u32 i = 0u; i < SCAN_TAKEN; ++i) {
    const bool is_state = full || (i * SCAN_ITEMS + item) % SCAN_STATES < states;
    if (SCAN_TOKEN_OF(i) < BLOCK) {
      FACTOR_ELEMENT(SCAN_ELEMENT_OF(i, 0u)) = is_state ? SCAN_WIDEN(asked_b[i]) : 0.0f;
      SCAN_PUT_C(i)
    }
  }
  SPACE_BARRIER();
#if SCAN_MAKES_OUTPUTS
  if (has_z) {
    UNROLL for (u32 i = 0u; i < SCAN_OWN; ++i) asked_z[i] =
        LOAD_Z_BITS(z_at + min(block + SCAN_TOKEN(i), last - 1u) * z_token);
  }
#endif
  if (block + BLOCK < last) SCAN_ASK(block + BLOCK)

  const u32 next = min(block + BLOCK, last);
  SCAN_OF_OUTPUTS(u32 outside = 0u;)  // a bit for each token of no sequence
  if (SCAN_HAS(SCAN_PACKED)) {
    if (anew || block >= end) SPACE_FIND(block)
    anew = false;
    if (held && block == begin) SCAN_ENTER
  }
  if (held && next == block + BLOCK && next <= end && full) {
    UNROLL for (u32 i = 0u; i < BLOCK; ++i) {
      const FLOAT2 step = STEP(i);
      SCAN_OF_SPANS(sum += step.x;)
      SCAN_OF_OUTPUTS(FLOAT4 products = zero;)
      UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
        state[f] = SPACE_EXP2_4(step.x * rate[f]) * state[f] + step.y * FACTOR(i, 0u, f);
        SCAN_OF_OUTPUTS(products += state[f] * FACTOR(i, 1u, f);)
      }
      SCAN_PUT_PRODUCT(i, products.x + products.y + (products.z + products.w))
    }
    if (next == end) SCAN_LEAVE
  } else {
    for (u32 token = block; token < next; ++token) {
      const u32 i = token - block;
      if (token >= end) {
        SPACE_FIND(token)
        if (held && token == begin) SCAN_ENTER
      }
      if (held) {
        const FLOAT2 step = STEP(i);
        SCAN_OF_SPANS(sum += step.x;)
        SCAN_OF_OUTPUTS(float product = 0.0f;)
        UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
          const u32 left = SCAN_LEFT(f);
          const FLOAT4 now = SPACE_EXP2_4(step.x * rate[f]) * state[f] + step.y * FACTOR(i, 0u, f);
          // What is behind the states stays 0, whatever the step is.
          if (left > 0u) state[f].x = now.x;
          if (left > 1u) state[f].y = now.y;
          if (left > 2u) state[f].z = now.z;
          if (left > 3u) state[f].w = now.w;
          SCAN_OF_OUTPUTS(product += SCAN_DOT(now, FACTOR(i, 1u, f), left);)
        }
        SCAN_PUT_PRODUCT(i, product)
        if (token + 1u == end) SCAN_LEAVE
      } else {
        SCAN_OF_OUTPUTS(outside |= 1u << i;)
      }
    }
  }
  SPACE_BARRIER();
#if SCAN_MAKES_OUTPUTS
  float share[SCAN_OWN];
  UNROLL for (u32 i = 0u; i < SCAN_OWN; ++i) {
    share[i] = PRODUCT_OF_PART(SCAN_TOKEN(i), 0u);
    UNROLL for (u32 other = 1u; other < WG_Y; ++other) share[i] +=
        PRODUCT_OF_PART(SCAN_TOKEN(i), other);
  }
  if (has_d) {
    UNROLL for (u32 i = 0u; i < SCAN_OWN; ++i) share[i] += skip * own_u[i];
  }
  if (has_z) {
    UNROLL for (u32 i = 0u; i < SCAN_OWN; ++i) share[i] *= space_silu(SCAN_WIDEN(asked_z[i]));
  }
  if (present) {
    UNROLL for (u32 i = 0u; i < SCAN_OWN; ++i) {
      const u32 token = block + SCAN_TOKEN(i);
      const float x = ((outside >> SCAN_TOKEN(i)) & 1u) == 0u ? share[i] : nothing;
      if (SCAN_IS_TOKEN(i) && token < last) STORE_OUTPUT(x, result_at + token * result_token);
    }
  }
#endif
}
