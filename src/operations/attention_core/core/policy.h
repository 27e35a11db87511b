// SPDX-License-Identifier: Apache-2.0
// Who sees whom and what a score is, for one (row, key) at a time. Text for OpenCL C and GLSL;
// attention/core/policy.clh and attention/core/policy.glsl say how each of them reads operands.
//
//   u     = scale q.k - slope |position - key| + bias     (bias here unless it comes after the cap)
//   score = log2(e) (cap ? cap tanh(u / cap) : u)         (+ log2(e) bias after the cap)
//   seen  : key in [first, end), equal segments, position in reach and in the chunk, mask not 0,
//           bias not -inf
//
// A row's entry in the table of rows is {first, end, position, segment}: the interval of keys that
// lengths, sequences, causal masks, windows and chunks leave, the key that lies on its diagonal,
// and its segment. Where keys have positions of their own, the interval holds lengths only.
#ifndef TESSERA_OPERATIONS_ATTENTION_POLICY_H
#define TESSERA_OPERATIONS_ATTENTION_POLICY_H
#include "abi/philox.h"
#include "operations/attention_core/core/score.h"

// Kernels that are built for calls without some of the features define this as the others, so that
// compilers drop what these take.
#ifndef CALL_FEATURES
#define CALL_FEATURES RULE(features)
#endif

#ifdef ROWS_KEEP_SPANS  // a member of RowPolicy, where registers are left for it
#define ROW_SPAN(at) ((at).span)
#else
#define ROW_SPAN(at) policy_span(POLICY_ARGUMENTS(at).position)
#endif

#ifndef SOFT_CAP  // some keep it in a register
#define SOFT_CAP CORE(soft_cap)
#endif

// Positions {first, last} of keys in reach of a row's own position and in its chunk.
FUNCTION INT2 policy_span(POLICY_PARAMETERS int position) {
  const u32 own = TO_U32(position), chunk = RULE(chunk);
  u32 left = RULE(reach_left), right = RULE(reach_right);
  if (chunk != 0u) {
    const u32 before = own - TO_U32(FLOOR_DIV(position, TO_INT(chunk))) * chunk;
    left = min(left, before), right = min(right, chunk - 1u - before);
  }
  const u32 below = own ^ 0x80000000u;  // positions that an int has below it, and above it
  return MAKE_INT2(TO_INT(own - min(left, below)), TO_INT(own + min(right, ~below)));
}

FUNCTION RowPolicy policy_row(POLICY_PARAMETERS u32 batch, u32 head, u32 row) {
  RowPolicy at;
  const INT4 entry = ROW_ENTRY(RULE(rows) + batch * CORE(q_len) + row);
  at.first = entry.x;
  at.end = entry.y;
  at.position = entry.z;
  at.segment = entry.w;
  at.mask = RULE(mask.offset) + batch * RULE(mask.stride_batch) +
            head / RULE(mask.group) * RULE(mask.stride_head) + row * RULE(mask.stride_row);
  at.bias = RULE(bias.offset) + batch * RULE(bias.stride_batch) +
            head / RULE(bias.group) * RULE(bias.stride_head) + row * RULE(bias.stride_row);
  at.segments = RULE(kv_segments_offset) + batch * RULE(kv_segments_stride_batch);
  at.positions = RULE(kv_positions_offset) + batch * RULE(kv_positions_stride_batch);
  at.slope = 0.0f;
  if ((CALL_FEATURES & POLICY_ALIBI) != 0u)
    at.slope = SLOPE_VALUE(RULE(slopes_offset) + batch * RULE(slopes_stride_batch) +
                           head * RULE(slopes_stride_head));
#ifdef ROWS_KEEP_SPANS
  at.span = policy_span(POLICY_ARGUMENTS at.position);
#endif
  // The number of weight (batch, head, row, 0), in 64 bits.
  const u32 line = (batch * CORE(heads) + head) * CORE(q_len) + row;
  at.number_low = line * CORE(kv_len);
  at.number_high = mul_hi(line, CORE(kv_len));
  return at;
}

FUNCTION int policy_position(POLICY_PARAMETERS RowPolicy at, int key) {
  if ((CALL_FEATURES & POLICY_POSITIONS) == 0u) return key;
  return POSITION_VALUE(at.positions + TO_U32(key) * RULE(kv_positions_stride_key));
}

// |a - b|, which an int need not hold.
FUNCTION u32 policy_distance(int a, int b) {
  return a > b ? TO_U32(a) - TO_U32(b) : TO_U32(b) - TO_U32(a);
}

// Whether segments, positions and the mask show the row a key that exists. No branch is around a
// load but for features.
FUNCTION bool policy_shows(POLICY_PARAMETERS RowPolicy at, int key) {
  const u32 features = CALL_FEATURES;
  bool shows = true;
  if ((features & POLICY_SEGMENTS) != 0u)
    shows = SEGMENT_VALUE(at.segments + TO_U32(key) * RULE(kv_segments_stride_key)) == at.segment;
  if ((features & POLICY_POSITIONS) != 0u) {
    const int position = policy_position(POLICY_ARGUMENTS at, key);
    const INT2 span = ROW_SPAN(at);
    shows = shows && position >= span.x && position <= span.y;
  }
  if ((features & POLICY_MASK) != 0u) {
    const bool kept = MASK_VALUE(at.mask + TO_U32(key) * RULE(mask.stride_key)) != 0u;
    shows = shows && kept;
  }
  return shows;
}

FUNCTION bool policy_sees(POLICY_PARAMETERS RowPolicy at, int key) {
  if (key < at.first || key >= at.end) return false;
#if PAGED
  if (PAGED_HIDES(at.segment) &&
      !page_is_there(POLICY_PAGES TO_U32(PAGED_SEQUENCE(at.segment)), TO_U32(key)))
    return false;
#endif
  return policy_shows(POLICY_ARGUMENTS at, key);
}

// Of a bias that hides its key as a mask does.
#define BIAS_HIDES(bias) (FLOAT_BITS(bias) == 0xff800000u)  // -inf

// The base-2 score of a key that the row sees, and the slope of the soft cap there. MASKED_SCORE
// where the bias hides the key; other scores are not.
FUNCTION FLOAT2 policy_score(POLICY_PARAMETERS RowPolicy at, int key, float logit) {
  const u32 features = CALL_FEATURES;
  const bool late = (features & POLICY_BIAS_AFTER_CAP) != 0u;
  float u = logit, bias = 0.0f, slope = 1.0f;
  if ((features & POLICY_ALIBI) != 0u)
    u -= at.slope *
         TO_FLOAT(policy_distance(policy_position(POLICY_ARGUMENTS at, key), at.position));
  if ((features & POLICY_BIAS) != 0u) {
    bias = BIAS_VALUE(at.bias + TO_U32(key) * RULE(bias.stride_key), features & POLICY_WIDE_BIAS);
    if (!late) u += bias;
  }
  if (SOFT_CAP > 0.0f) {
    const float t = saturating_tanh(u / SOFT_CAP);
    u = SOFT_CAP * t;
    slope = 1.0f - t * t;
  }
  if ((features & POLICY_BIAS) == 0u) return MAKE_FLOAT2(u * LOG2_E, slope);
  if (late) u += bias;
  const bool far = DTYPE != DTYPE_F16 || (features & POLICY_WIDE_BIAS) != 0u;
  const float score = far ? exponent_of_score(u) : u * LOG2_E;
  return MAKE_FLOAT2(BIAS_HIDES(bias) ? MASKED_SCORE : score, slope);
}

// The base-2 score that stands for a natural one, and the other way round.
FUNCTION float policy_exponent(POLICY_PARAMETERS float score) {
  return (CALL_FEATURES & POLICY_FAR) != 0u ? exponent_of_score(score) : score * LOG2_E;
}
FUNCTION float policy_log_sum_exp(POLICY_PARAMETERS float shift, float sum) {
  const float exponent = shift + log2(sum);
  return (CALL_FEATURES & POLICY_FAR) != 0u ? score_of_exponent(exponent) : exponent * LN_2;
}

// The exponent of a weight, by {shift, less} of its row. Where these are of the row's own maximum,
// less is not 0, and no score is above it, though it may come out so: where scores are far from 0,
// their roundings are far more than 1.
FUNCTION float policy_weight_exponent(float score, float shift, float less) {
  const float above = score - shift;
  return (less != 0.0f && above > 0.0f ? 0.0f : above) - less;
}
// The least that can be told from 0, which changes no exponent.
#define LEAST_LESS 1.1754944e-38f
FUNCTION float policy_less(float sum) {
  const float less = log2(sum);
  return less == 0.0f ? LEAST_LESS : less;
}

FUNCTION bool policy_drops(POLICY_PARAMETERS RowPolicy at, int key) {
  const u32 low = at.number_low + TO_U32(key);
  const u32 high = at.number_high + (low < at.number_low ? 1u : 0u);
  return philox_word(low, high, RULE(seed_low), RULE(seed_high)) < RULE(dropout_threshold);
}
// What dropout multiplies the weight with: 0 or the factor that keeps the mean.
FUNCTION float policy_keep(POLICY_PARAMETERS RowPolicy at, int key) {
  if ((CALL_FEATURES & POLICY_DROPOUT) == 0u) return 1.0f;
  return policy_drops(POLICY_ARGUMENTS at, key) ? 0.0f : RULE(dropout_factor);
}

// Sinks join the sum of a row's weights, whose shift they may raise: {shift, sum} afterwards. The
// sum of the row itself shrinks by exp2(shift before - shift after).
FUNCTION FLOAT2 policy_sinks(POLICY_PARAMETERS u32 head, float shift, float sum) {
  if ((CALL_FEATURES & POLICY_SINKS) == 0u) return MAKE_FLOAT2(shift, sum);
  const u32 first = RULE(sinks_offset) + head / RULE(sinks_group) * RULE(sinks_stride_head);
  const u32 wide = CALL_FEATURES & POLICY_WIDE_SINKS;
  float largest = shift;
  for (u32 n = 0u; n < RULE(sinks); ++n)
    largest = max(largest, exponent_of_score(SINK_VALUE(first + n * RULE(sinks_stride), wide)));
  float total = sum * exp2(shift - largest);
  for (u32 n = 0u; n < RULE(sinks); ++n)
    total += exp2(exponent_of_score(SINK_VALUE(first + n * RULE(sinks_stride), wide)) - largest);
  return MAKE_FLOAT2(largest, total);
}

#endif  // TESSERA_OPERATIONS_ATTENTION_POLICY_H
