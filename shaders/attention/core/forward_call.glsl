// SPDX-License-Identifier: Apache-2.0
// What a forward kernel is called with: the arguments `args`, of which CALL are those of every call, and with POLICY=1
// the operands of the policies. Operands that all calls have lie at bindings 0 to 4, the scratch buffer behind them.
#ifndef TESSERA_ATTENTION_CORE_FORWARD_CALL_GLSL
#define TESSERA_ATTENTION_CORE_FORWARD_CALL_GLSL
#include "lib/prelude.glsl"
#include "operations/attention_core/core/args.h"
#define SCRATCH_BINDING 5
#ifndef PAGED
#define PAGED 0
#endif
#ifndef CODES
#define CODES 0
#endif
#if POLICY
#include "operations/attention_core/core/policy_args.h"
#if CODES
#include "operations/attention_core/core/pages_args.h"
BUFFER_ARGS(AttentionCodesCall, 15);
layout(std430, binding = 13) readonly buffer KeyScales { float key_scale[]; };
layout(std430, binding = 14) readonly buffer ValueScales { float value_scale[]; };
#elif PAGED
#include "operations/attention_core/core/pages_args.h"
BUFFER_ARGS(AttentionPagedCall, 13);
#else
BUFFER_ARGS(AttentionCall, 12);
#endif
#include "attention/core/policy.glsl"
#define CALL args.core
#else
#include "operations/attention_core/core/score.h"
PUSH_ARGS(AttentionArgs);
#define CALL args
#endif

#endif  // TESSERA_ATTENTION_CORE_FORWARD_CALL_GLSL
