// SPDX-License-Identifier: Apache-2.0
// Attention over parts of the keys, put together: shared prefixes, split keys, rings of devices.
//
//   log_sum_exp = log sum_p exp(log_sum_exps[p])                           (natural logarithms)
//   output      = sum_p exp(log_sum_exps[p] - log_sum_exp) outputs[p]
//
// Parts are outputs [parts, tokens, heads, dim] with log-sum-exps [parts, tokens, heads], or, as
// flash_attention gives them, [parts, batch, seq, heads, dim] with [parts, batch, heads, seq]. One
// part more may be another pair of tensors, so that two need no copy. Strides are any along the
// axes in front of dim, which is contiguous.
//
// A part whose log-sum-exp is -infinity saw no key: its output is not read. Where no part saw one
// the output is 0 and the log-sum-exp -infinity. Lowest floats are numbers as others; parts at
// +infinity share the row between them. NaN makes its row NaN.
//
// Gradients, with w[p] = exp(log_sum_exps[p] - log_sum_exp) and d[p] = grad_output . outputs[p]:
//
//   grad_outputs[p]      = w[p] grad_output
//   grad_log_sum_exps[p] = w[p] (d[p] - sum_q w[q] d[q] + grad_log_sum_exp)
//
// Parts of weight 0 have gradients of 0.
//
// Numerics: storage f32, f16 or bf16, log-sum-exps f32; float arithmetic, one rounding to nearest
// even at the end; sums have one order.
//
// Errors: InvalidArgument for shapes and dtypes that contradict this, Unsupported where no variant
// of the device can.
//
// Source: Ye et al., FlashInfer, arXiv:2501.01005 (attention states).
#pragma once

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

struct AttentionStates {
  Tensor output{};
  Tensor log_sum_exp{};  // f32
};

struct MergeGradients {
  AttentionStates parts{}, other{};  // other: empty where the call has none
};

TESSERA_API AttentionStates merge_attention_states(const Executor& on, const AttentionStates& parts,
                                                   const AttentionStates& other = {});
TESSERA_API MergeGradients merge_attention_states_backward(const Executor& on,
                                                           const AttentionStates& parts,
                                                           const AttentionStates& gradient,
                                                           const AttentionStates& other = {});

}  // namespace tessera
