// SPDX-License-Identifier: Apache-2.0
// What policy.h needs of GLSL: the operands of the policies, and how to read them. The including
// shader defines SCRATCH_BINDING, after which they follow, and declares the arguments `args` as an
// AttentionCall.
#ifndef TESSERA_ATTENTION_POLICY_GLSL
#define TESSERA_ATTENTION_POLICY_GLSL
#include "lib/prelude.glsl"
#include "operations/attention_core/core/policy_args.h"

layout(std430, binding = SCRATCH_BINDING) readonly buffer Rows { ivec4 policy_rows[]; };
layout(std430, binding = SCRATCH_BINDING + 1) readonly buffer Mask { uint mask_words[]; };
layout(std430, binding = SCRATCH_BINDING + 2) readonly buffer Bias { scalar bias_scalars[]; };
layout(std430, binding = SCRATCH_BINDING + 2) readonly buffer WideBias { float bias_floats[]; };
layout(std430, binding = SCRATCH_BINDING + 3) readonly buffer Slopes { float slopes[]; };
layout(std430, binding = SCRATCH_BINDING + 4) readonly buffer Sinks { scalar sink_scalars[]; };
layout(std430, binding = SCRATCH_BINDING + 4) readonly buffer WideSinks { float sink_floats[]; };
layout(std430, binding = SCRATCH_BINDING + 5) readonly buffer Segments { int kv_segments[]; };
layout(std430, binding = SCRATCH_BINDING + 6) readonly buffer Positions { int kv_positions[]; };

#ifndef PAGED
#define PAGED 0
#endif
#ifndef CODES
#define CODES 0
#endif
#ifndef LISTED  // 1: tiles of rows, and the keys that they see, are those of the work list
#define LISTED 0
#endif
#if PAGED
#include "operations/attention_core/core/pages_args.h"
layout(std430, binding = SCRATCH_BINDING + 7) readonly buffer Tables { int block_tables[]; };
#define PAGES_PARAMETERS
#define PAGES_ARGUMENTS
#ifndef PAGES
#define PAGES(name) (args.pages.name)
#endif
#define TABLE_VALUE(n) (block_tables[n])
#include "operations/attention_core/core/pages.h"
#endif

struct RowPolicy {
  int first, end, position, segment;
  uint mask, bias, segments, positions, number_low, number_high;
  float slope;
};

#define WORD uint
#define WORD_OF(x) (x)
#define POLICY_PARAMETERS
#define POLICY_ARGUMENTS
#define POLICY_PAGES
#define RULE(name) (args.policy.name)
#define CORE(name) (args.core.name)
#define ROW_ENTRY(n) (policy_rows[n])
// 8-bit storage is an extension, so bytes are taken out of words.
#define MASK_VALUE(n) (mask_words[(n) / 4u] >> ((n) % 4u * 8u) & 0xffu)
#define SLOPE_VALUE(n) (slopes[n])
#define SEGMENT_VALUE(n) (kv_segments[n])
#define POSITION_VALUE(n) (kv_positions[n])
#define BIAS_VALUE(n, wide) ((wide) != 0u ? bias_floats[n] : load_scalar(bias_scalars[n]))
#define FLOAT_BITS(x) floatBitsToUint(x)
#define INT2 ivec2
#define MAKE_INT2(x, y) ivec2(x, y)
#define SINK_VALUE(n, wide) ((wide) != 0u ? sink_floats[n] : load_scalar(sink_scalars[n]))

#include "operations/attention_core/core/policy.h"

#endif  // TESSERA_ATTENTION_POLICY_GLSL
