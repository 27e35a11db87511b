// SPDX-License-Identifier: Apache-2.0
// Exact softmax attention in tiles, with memory that grows with the sequence and not with its
// square (FlashAttention-2, arXiv:2307.08691), and its gradients.
//
//   u[i,j] = softmax_scale * sum_d query[i,d] * key[j,d] + bias[i,j] - slope * |p(i) - j|
//   s[i,j] = cap * tanh(u[i,j] / cap) if logits_soft_cap, else u[i,j]
//   p[i,:] = softmax over the visible j of s[i,:], with exp(sink) of every sink in the denominator
//   output[i,:]      = sum_j keep[i,j] * p[i,j] * value[j,:]
//   log_sum_exp[i]   = ln (sum over the visible j of exp(s[i,j]) + sum of exp(sink))
//
// Row i lies on the diagonal at p(i) = i + shift, shift = 0 for top-left alignment and keys - rows
// for bottom-right, counted in the sequence that the row belongs to. It sees key j when
//
//   causal:          j <= p(i)
//   sliding_window:  p(i) - left <= j <= p(i) + right
//   chunk_size:      j <= p(i), and floor(j / chunk_size) = floor(p(i) / chunk_size)
//   lengths:         i < q_lengths[b], j < kv_lengths[b]
//   cum_seqlens:     i and j belong to the same sequence
//   segment ids:     q_segment_ids[i] = kv_segment_ids[j], which is not negative
//   attention_mask:  attention_mask[i,j] is not 0
//   bias:            bias[i,j] is not -inf
//
// all hold. With positions, p(i) is q_positions[i], and kv_positions[j] stands for j in the first
// three and in the slope; they may be any int32. A row that sees nothing gets output 0, log_sum_exp
// -inf (ln of the sinks' sum where there are any), and gradient 0. A finite bias hides nothing, be
// it the lowest number of its dtype: a row of them is the softmax of its scores as float rounds
// them, mostly the mean.
//
// An element that no visible pair needs may hold anything, NaN and infinities too: padding need not
// be initialised. It changes no result, and its gradient is 0. Where a visible pair does need one
// that is not finite, the formulas say what becomes of it, in the rows that see it and in no other,
// but for keys without weight: those that dropout leaves out, and those whose score is more than 87
// = -ln 2^-126 below the largest score or sink of the row, for which float has no normal number. If
// value[j,d] of such a key is not finite, output[i,d] is what the formula says, or NaN, or what it
// is without that key: kernels that hide keys by a weight of 0 cannot tell it from a hidden one,
// and asking would cost every finite call. Which it is depends on the variant and its
// configuration. Gradients follow the formulas, but that those of calls with dropout may leave such
// keys out.
//
// What index tensors hold is only known on the device: a length or offset outside its range counts
// as the nearest inside. Nothing outside the operands is ever read. Sequence n of cum_seqlens has
// the rows and keys from offset n to offset n + 1. With a batch axis it lies in batch n, from its
// row 0 on, and has as many as the offsets differ by, at most all of the batch and at least none.
// Where packed offsets decrease, a row's sequence is still looked up by halving the list (the upper
// half where the offset at (first + last) / 2 is not above the row); a row outside the one that is
// found sees nothing.
//
// Dropout: keep[i,j] is 0 or 1 / (1 - dropout_prob), by Philox4x32-10 with the number of the weight
// as the counter and the seed as the key; the same in forward and backward whatever the tiling.
//
// Numerics: storage f32, f16 or bf16; scores, softmax and accumulation in float; one rounding to
// nearest even at the end. Every sum has one order: the same library, driver, device, configuration
// and inputs give the same bits.
//
// Of f16 and bf16 operands, variants for matrix units also round factors that are computed between
// two products to the storage type: forward (hopper, mma, mma_decode, cooperative,
// cooperative_registers, cpu_bf16) exp(s[i,j] - largest s of the row), which is at most 1 (of
// codes, mma_decode takes two bf16 in place of one for it times the scale); backward (hopper, mma,
// mma_wide, cpu_bf16) keep[i,j] p[i,j] and du[i,j]. Each is off by at most 2^-11 of itself in f16
// and 2^-8 in bf16. In f16, those below 2^-14 = 6.1e-5 are off by up to 2^-25, and below that they
// count as 0: many keys of tiny weight, and gradients of scores that are as small, lose bits; scale
// the output's gradient, or ask for more precision. With precision = Precision::kHighest no such
// variant runs, and what is said above holds without exception; f32 operands never meet one
// (`mma` multiplies floats as three products of tf32, with the error of float).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"
#include "tessera/mask.hpp"

namespace tessera {

// Tensors that are left out are not part of the call. An axis of size 1 broadcasts.
struct FlashAttentionOptions {
  std::optional<float> softmax_scale{};  // default head_dim^-1/2
  bool causal = false;
  CausalAlignment causal_alignment = CausalAlignment::kTopLeft;
  std::optional<std::array<std::int64_t, 2>>
      sliding_window{};                      // {left, right}, inclusive, not negative
  std::optional<std::int64_t> chunk_size{};  // > 0; causal inside chunks
  std::optional<float> logits_soft_cap{};    // > 0
  Tensor attention_mask{};  // u8 [batch, heads or kv_heads, q_len, kv_len], 0 = hidden; also
                            // [batch, q_len, kv_len] and [batch, kv_len]
  Tensor bias{};            // the same axes; the dtype of query, or f32
  Tensor alibi_slopes{};    // f32 [heads] or [batch, heads]
  Tensor softmax_aux{};     // sinks: [sinks], [kv_heads, sinks] or [heads, sinks]
  Tensor cum_seqlens_q{};   // i32 [sequences + 1], both or neither: packed operands [rows, heads,
  Tensor cum_seqlens_k{};   // dim], or the lengths of padded ones [batch, rows, heads, dim]
  Tensor q_lengths{};       // i32 [batch]
  Tensor kv_lengths{};      // i32 [batch]
  Tensor q_segment_ids{};   // i32 [batch, q_len], both or neither
  Tensor kv_segment_ids{};  // i32 [batch, kv_len]
  Tensor q_positions{};     // i32 [batch, q_len], both or neither
  Tensor kv_positions{};    // i32 [batch, kv_len]
  float dropout_prob = 0;   // in [0, 1)
  std::int64_t dropout_seed = 0;  // its 64 bits: -1 is the seed 2^64 - 1
  bool normalize_output =
      true;  // false: output = sum_j exp(s[i,j] - largest s of the row) value[j]
  // Work-groups that share the keys of a row; 0 = chosen by rule or tuned. A pinned number gives
  // the same bits whatever batch the call travels in.
  int num_splits = 0;
  std::optional<Precision> precision{};  // see Numerics
};

// The options that say what `mask` says. Uploads its index tensors; a dense mask or token types
// become attention_mask. Positions are for embeddings and stay behind.
TESSERA_API FlashAttentionOptions with_mask(const Context& context, const MaskSpec& mask,
                                            FlashAttentionOptions options = {});

// query [batch, q_len, heads, head_dim]; key [batch, kv_len, kv_heads, head_dim]; value [batch,
// kv_len, kv_heads, value_dim]; heads is a multiple of kv_heads, and query head h reads key/value
// head h / (heads / kv_heads). head_dim and value_dim are 1 to 512. Packed sequences have no batch
// axis. Batch, sequence and head axes may have any strides, so a [batch, heads, seq, dim] tensor is
// passed as tensor.permute({0, 2, 1, 3}); the feature axis must be contiguous. Returns output
// [batch, q_len, heads, value_dim] in the dtype of query. Throws InvalidArgument for shapes and
// values that contradict this, Unsupported where no variant of the device can.
TESSERA_API Tensor flash_attention(const Executor& on, const Tensor& query, const Tensor& key,
                                   const Tensor& value, const FlashAttentionOptions& options = {});

struct FlashAttentionForward {
  Tensor output;
  Tensor log_sum_exp;  // f32 [batch, heads, q_len], natural logarithm; packed: [heads, q_len]
};
TESSERA_API FlashAttentionForward
flash_attention_forward(const Executor& on, const Tensor& query, const Tensor& key,
                        const Tensor& value, const FlashAttentionOptions& options = {});

// Which gradients are wanted beside those of query, key and value.
struct FlashAttentionGradientOptions {
  bool bias = false;         // needs FlashAttentionOptions::bias
  bool softmax_aux = false;  // needs FlashAttentionOptions::softmax_aux
};

struct FlashAttentionGradients {
  Tensor query{}, key{}, value{};  // in the shapes and dtype of the operands
  Tensor bias{}, softmax_aux{};    // empty unless asked for
};

//   delta[i] = sum_d do[i,d] o[i,d]
//   dp[i,j]  = keep[i,j] sum_d do[i,d] v[j,d]
//   ds[i,j]  = p[i,j] (dp[i,j] - delta[i])
//   du[i,j]  = ds[i,j] (1 - tanh(u[i,j] / cap)^2)
//   dq[i]    = scale sum_j du[i,j] k[j]
//   dk[j]    = scale sum_i du[i,j] q[i]
//   dv[j]    = sum_i keep[i,j] p[i,j] do[i]
//   dbias    = du, summed over broadcast axes
//   dsink    = -sum_i exp(sink - log_sum_exp[i]) delta[i]
//
// With normalize_output = false, p[i,j] is not divided by the sum, and delta[i] comes off where the
// row has its largest score only, be it a key's or a sink's (the first of equals).
//
// `forward` is what flash_attention_forward returned for the same operands and options; p is
// recomputed from its log_sum_exp. With a bias or slopes, where log_sum_exp is beyond 4096 in
// magnitude and float does not hold the number of keys beside it, p is made from the scores alone.
// What forward's results and output_gradient hold in rows that see no key counts for nothing.
// output_gradient has the output's shape and dtype. Key and value gradients are summed over the
// query heads of a group. Errors are those of flash_attention; InvalidArgument also where a wanted
// gradient's operand is missing.
TESSERA_API FlashAttentionGradients flash_attention_backward(
    const Executor& on, const Tensor& query, const Tensor& key, const Tensor& value,
    const FlashAttentionForward& forward, const Tensor& output_gradient,
    const FlashAttentionOptions& options = {}, const FlashAttentionGradientOptions& wanted = {});

namespace vjp {

// Takes the gradient of the output to those of the operands. Keeps the operands alive; may be
// called any number of times.
class FlashAttentionPullback {
 public:
  TESSERA_API FlashAttentionGradients
  operator()(const Tensor& output_gradient, const FlashAttentionGradientOptions& wanted = {}) const;

 private:
  struct State;
  explicit FlashAttentionPullback(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  friend struct FlashAttentionMaker;
  std::shared_ptr<const State> state_;
};

struct FlashAttentionResult {
  Tensor output;
  FlashAttentionPullback pullback;
};

// auto [output, pullback] = vjp::flash_attention(context, q, k, v, {.causal = true});
// auto [dq, dk, dv, dbias, dsinks] = pullback(output_gradient);
TESSERA_API FlashAttentionResult flash_attention(const Executor& on, const Tensor& query,
                                                 const Tensor& key, const Tensor& value,
                                                 const FlashAttentionOptions& options = {});

}  // namespace vjp
}  // namespace tessera
