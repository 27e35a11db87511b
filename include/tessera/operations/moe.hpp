// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: choosing experts for tokens, moving rows to experts and back, and where
// experts are kept.
//
// route, with logits [tokens, experts] and noise n(t, e) of standard deviation `noise`:
//
//   x(t, e)     = logits[t, e] + n(t, e)
//   score(t, e) = exp(x(t, e)) / sum over e' of exp(x(t, e'))    softmax
//   score(t, e) = max(1 / (1 + exp(-x(t, e))), 1e-6)             sigmoid
//
// The top_k experts of a token are those of the largest x, or of the largest score + bias; of equal
// ones that of the lower number is in front. With groups, experts in equal parts in their order,
// only those of the top_groups best groups count: by their best expert, or by the sum of the two
// best where there is a bias. A logit or a bias of NaN or -infinity excludes its expert from the
// choice; where no expert is left the id is -1 and the weight 0. An expert whose logit excludes it
// has score 0 and gradient 0; a token whose logits exclude all of them adds nothing to the losses.
//
// Places with experts go in the order of tokens, and of a token's choices: slots[t, r] is how many
// stand in front, -1 (dropped) from capacity on. The row of a choice is offsets[id] + slot: experts
// begin at the sums of counts, or at multiples of the capacity. `counts` are the kept choices of
// each expert, so without a capacity the sizes of the experts' groups of rows; with one every group
// has `capacity` rows, of which the first counts[e] hold tokens and the others 0.
//
//   weights[t, r] = scale score / sum of the scores of the token's kept choices, or scale score
//   balance_loss  = coefficient experts mean_e(mean_t score(t, e) mean_t chosen(t, e))
//   z_loss        = coefficient mean_t (log sum_e exp x(t, e))^2
//
// where `chosen` counts dropped choices, too. Gradients pass through weights and losses to logits,
// none through the choice. The gradient takes ids and slots as they are given: experts that a token
// names twice count twice, ids that are no expert are left out (and not reported).
//
// Noise: number t experts + e of the generator of attention's dropout (Philox4x32-10, with the seed
// as its key): words w0, w1 of its block give sqrt(-2 ln u) cos(2 pi v), u = (floor(w0 / 2^8) + 1)
// / 2^24, v = floor(w1 / 2^8) / 2^24.
//
// dispatch copies row t of its input to the rows of t's choices; rows without a token are 0. With
// weights, which the function below leaves out and Executor::run takes, it multiplies by them.
// combine sums weights times rows. Their gradients are each other: that of dispatch is combine with
// the same choices, that of combine's rows dispatch. Choices of -1 are left out, rows of weight 0
// not read. Ids and slots that are not there are left out and reported by DataError.
//
// Numerics: storage f32, f16 or bf16, all arithmetic in float; sums have one order.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this (top_k beyond the
// number of experts among them), Unsupported where no variant of the device can: route keeps up to
// 2048 experts in local memory.
//
// Sources: Shazeer et al., arXiv:1701.06538; Fedus et al., arXiv:2101.03961; Zoph et al.,
// arXiv:2202.08906 (z loss); DeepSeek-V3, arXiv:2412.19437 (groups, bias).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

enum class RouteScore { kSoftmax, kSigmoid };

struct RouteOptions {
  std::int64_t top_k = 2;
  RouteScore score = RouteScore::kSoftmax;
  Tensor bias{};                             // [experts] f32
  std::int64_t groups = 1;                   // divides the number of experts
  std::optional<std::int64_t> top_groups{};  // all of them
  std::optional<std::int64_t> capacity{};    // dropless
  bool renormalise = true;
  float scale = 1;
  float noise = 0;  // standard deviation
  std::uint64_t seed = 0;
  float balance_coefficient = 0.01F;
  float z_coefficient = 0.001F;
};

// Places of an expert for a capacity factor: max(1, ceil(tokens factor top_k / experts)).
TESSERA_API std::int64_t expert_capacity(std::int64_t tokens, float factor, std::int64_t top_k,
                                         std::int64_t experts);

struct Routes {
  Tensor expert_ids, slots;     // [tokens, top_k] i32
  Tensor weights;               // [tokens, top_k] f32
  Tensor counts;                // [experts] i32: kept choices; sizes of groups where dropless
  Tensor offsets;               // [experts + 1] i32
  Tensor balance_loss, z_loss;  // [1] f32
};

TESSERA_API Routes route(const Executor& on, const Tensor& logits,
                         const RouteOptions& options = {});
// Of logits. Losses whose gradients are left out do not count.
TESSERA_API Tensor route_backward(const Executor& on, const Tensor& logits, const Routes& routes,
                                  const Tensor& grad_weights, const Tensor& grad_balance_loss = {},
                                  const Tensor& grad_z_loss = {}, const RouteOptions& options = {});

// `rows`: of the output, experts capacity; 0 = tokens top_k, as without a capacity.
TESSERA_API Tensor dispatch(const Executor& on, const Tensor& input, const Routes& routes,
                            std::int64_t rows = 0);
TESSERA_API Tensor dispatch_backward(const Executor& on, const Tensor& grad_output,
                                     const Routes& routes);
TESSERA_API Tensor combine(const Executor& on, const Tensor& rows, const Routes& routes);

struct CombineGradients {
  Tensor rows, weights;
};
TESSERA_API CombineGradients combine_backward(const Executor& on, const Tensor& rows,
                                              const Routes& routes, const Tensor& grad_output);

// ---- experts that are feed-forward networks -----------------------------------------------

// All of it as one call: route, dispatch, two products of groups of rows, combine.
//
//   output[t] = sum over the kept choices r of t of weights[t, r] expert_e(input[t]),
//   expert_e(x) = (act(x gate_e) * (x up_e)) down_e,    e = expert_ids[t, r]
//   expert_e(x) = act(x up_e) down_e                    without a gate
//
// act: silu(z) = z / (1 + exp(-z)) (SwiGLU), gelu by the error function (GeGLU), gelu_tanh, relu,
// none; as matmul's, slopes too: that of silu is 1 at infinity and 0 at -infinity.
//
// input [tokens, hidden]; logits [tokens, experts] of the router, with all that route says of them;
// gate_up [experts, hidden, 2 inner], the gate's columns before those of up, or [experts, hidden,
// inner] without a gate; down [experts, inner, hidden]; with transposed [experts, 2 inner, hidden]
// and [experts, hidden, inner].
//
// Numerics: f32, f16 or bf16 of their own, but grad_output has the dtype of input, and so has what
// is kept between the products: rows [gate, up], gated rows and those of outputs are rounded to it.
// The gradients compute these again. Shared experts are a call of their own, whose output is added.
enum class ExpertActivation : std::uint8_t { kSilu, kGelu, kGeluTanh, kRelu, kNone };

struct MoeFfnOptions {
  RouteOptions route{};
  bool transposed = false;
  ExpertActivation activation = ExpertActivation::kSilu;
  bool gated = true;
};

struct MoeFfnResult {
  Tensor output;
  Routes routes;
};

TESSERA_API MoeFfnResult moe_ffn(const Executor& on, const Tensor& input, const Tensor& logits,
                                 const Tensor& gate_up, const Tensor& down,
                                 const MoeFfnOptions& options = {});

struct MoeFfnGradients {
  Tensor input, logits, gate_up, down;
};
// Losses whose gradients are left out do not count.
TESSERA_API MoeFfnGradients moe_ffn_backward(const Executor& on, const Tensor& input,
                                             const Tensor& logits, const Tensor& gate_up,
                                             const Tensor& down, const Routes& routes,
                                             const Tensor& grad_output,
                                             const MoeFfnOptions& options = {},
                                             const Tensor& grad_balance_loss = {},
                                             const Tensor& grad_z_loss = {});

// ---- where experts are kept, on the host --------------------------------------------------------

// Items to `packs` packs of equally many: by descending weight each to the lightest pack that has
// room, of equal ones to the first. Throws InvalidArgument if packs do not divide the items.
struct Packing {
  std::vector<std::int64_t> pack, rank;  // of each item: its pack, and its place there
};
TESSERA_API Packing balanced_packing(const std::vector<double>& weights, std::int64_t packs);

struct PlacementOptions {
  std::int64_t replicas = 0;  // of all experts together, a multiple of gpus
  std::int64_t groups = 1;    // of experts that stay on one node
  std::int64_t nodes = 1;
  std::int64_t gpus = 1;     // of all nodes together
  bool hierarchical = true;  // groups to nodes, replicas within nodes, then to devices
};

// Of one layer. Physical experts are replicas in the order of devices.
struct ExpertPlacement {
  std::vector<std::int64_t> physical_to_logical;               // [replicas]
  std::vector<std::vector<std::int64_t>> logical_to_physical;  // [experts], of each its replicas
  std::vector<std::int64_t> counts;                            // [experts]
};

// `load`: of each expert. Replicas go one by one to the expert of the largest load for each of its
// replicas, of equal ones to the first. Throws InvalidArgument where sizes do not divide each other
// or an expert has no replica. Source: DeepSeek's expert-parallel load balancer.
TESSERA_API ExpertPlacement expert_placement(const std::vector<double>& load,
                                             const PlacementOptions& options);

}  // namespace tessera
