// SPDX-License-Identifier: Apache-2.0
// The typed functions on devices.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/moe.hpp"

namespace tessera {
namespace {

Options scores(const RouteOptions& options) {
  return {{"score", std::string(options.score == RouteScore::kSigmoid ? "sigmoid" : "softmax")},
          {"renormalise", options.renormalise},
          {"scale", static_cast<double>(options.scale)},
          {"noise", static_cast<double>(options.noise)},
          {"seed", static_cast<std::int64_t>(options.seed)},
          {"balance_coefficient", static_cast<double>(options.balance_coefficient)},
          {"z_coefficient", static_cast<double>(options.z_coefficient)}};
}

Options choice_of(const RouteOptions& options) {
  Options named = scores(options);
  named["top_k"] = options.top_k;
  named["groups"] = options.groups;
  if (options.top_groups) named["top_groups"] = *options.top_groups;
  if (options.capacity) named["capacity"] = *options.capacity;
  return named;
}

Routes routes_of(Tensors results) {
  return {.expert_ids = std::move(results.at("expert_ids")),
          .slots = std::move(results.at("slots")),
          .weights = std::move(results.at("weights")),
          .counts = std::move(results.at("counts")),
          .offsets = std::move(results.at("offsets")),
          .balance_loss = std::move(results.at("balance_loss")),
          .z_loss = std::move(results.at("z_loss"))};
}

std::string name_of(ExpertActivation activation) {
  switch (activation) {
    case ExpertActivation::kSilu:
      return "silu";
    case ExpertActivation::kGelu:
      return "gelu";
    case ExpertActivation::kGeluTanh:
      return "gelu_tanh";
    case ExpertActivation::kRelu:
      return "relu";
    case ExpertActivation::kNone:
      return "none";
  }
  throw InvalidArgument("moe_ffn: activation has no value of ExpertActivation");
}

void set_expert(Options& named, const MoeFfnOptions& options) {
  named["transposed"] = options.transposed;
  named["activation"] = name_of(options.activation);
  named["gated"] = options.gated;
}

Tensors choices(const Routes& routes) {
  return {{"expert_ids", routes.expert_ids}, {"slots", routes.slots}, {"offsets", routes.offsets}};
}

}  // namespace

std::int64_t expert_capacity(std::int64_t tokens, float factor, std::int64_t top_k,
                             std::int64_t experts) {
  if (experts < 1) throw InvalidArgument("expert_capacity: there are no experts");
  const double places = static_cast<double>(tokens) * static_cast<double>(factor) *
                        static_cast<double>(top_k) / static_cast<double>(experts);
  if (!(places < 0x1p31)) throw InvalidArgument("expert_capacity: is 2^31 or more");
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(places)));
}

Routes route(const Executor& on, const Tensor& logits, const RouteOptions& options) try {
  Tensors tensors{{"logits", logits}};
  if (options.bias) tensors.emplace("bias", options.bias);
  return routes_of(
      on.run("route", std::move(tensors), choice_of(options), {"balance_loss", "z_loss"}));
} catch (...) {
  rethrow_as_error();
}

Tensor route_backward(const Executor& on, const Tensor& logits, const Routes& routes,
                      const Tensor& grad_weights, const Tensor& grad_balance_loss,
                      const Tensor& grad_z_loss, const RouteOptions& options) try {
  Tensors tensors{{"logits", logits},
                  {"expert_ids", routes.expert_ids},
                  {"slots", routes.slots},
                  {"grad_weights", grad_weights}};
  if (grad_balance_loss) tensors.emplace("grad_balance_loss", grad_balance_loss);
  if (grad_z_loss) tensors.emplace("grad_z_loss", grad_z_loss);
  return on.run("route_backward", std::move(tensors), scores(options)).at("grad_logits");
} catch (...) {
  rethrow_as_error();
}

Tensor dispatch(const Executor& on, const Tensor& input, const Routes& routes,
                std::int64_t rows) try {
  Tensors tensors = choices(routes);
  tensors.emplace("input", input);
  Options options;
  if (rows != 0) options["rows"] = rows;
  return on.run("dispatch", std::move(tensors), std::move(options)).at("output");
} catch (...) {
  rethrow_as_error();
}

Tensor dispatch_backward(const Executor& on, const Tensor& grad_output, const Routes& routes) try {
  Tensors tensors = choices(routes);
  tensors.emplace("rows", grad_output);
  return on.run("combine", std::move(tensors)).at("output");
} catch (...) {
  rethrow_as_error();
}

Tensor combine(const Executor& on, const Tensor& rows, const Routes& routes) try {
  Tensors tensors = choices(routes);
  tensors.emplace("rows", rows);
  if (routes.weights) tensors.emplace("weights", routes.weights);
  return on.run("combine", std::move(tensors)).at("output");
} catch (...) {
  rethrow_as_error();
}

CombineGradients combine_backward(const Executor& on, const Tensor& rows, const Routes& routes,
                                  const Tensor& grad_output) try {
  Tensors tensors = choices(routes);
  tensors.emplace("rows", rows);
  tensors.emplace("grad_output", grad_output);
  std::vector<std::string> wanted{"grad_rows"};
  if (routes.weights) {
    tensors.emplace("weights", routes.weights);
    wanted.emplace_back("grad_weights");
  }
  Tensors results = on.run("combine_backward", std::move(tensors), {}, wanted);
  CombineGradients gradients{.rows = std::move(results.at("grad_rows")), .weights = {}};
  if (routes.weights) gradients.weights = std::move(results.at("grad_weights"));
  return gradients;
} catch (...) {
  rethrow_as_error();
}

MoeFfnResult moe_ffn(const Executor& on, const Tensor& input, const Tensor& logits,
                     const Tensor& gate_up, const Tensor& down, const MoeFfnOptions& options) try {
  Tensors tensors{{"input", input}, {"logits", logits}, {"gate_up", gate_up}, {"down", down}};
  if (options.route.bias) tensors.emplace("bias", options.route.bias);
  Options named = choice_of(options.route);
  set_expert(named, options);
  Tensors results =
      on.run("moe_ffn", std::move(tensors), std::move(named), {"balance_loss", "z_loss"});
  Tensor output = std::move(results.at("output"));
  return {.output = std::move(output), .routes = routes_of(std::move(results))};
} catch (...) {
  rethrow_as_error();
}

MoeFfnGradients moe_ffn_backward(const Executor& on, const Tensor& input, const Tensor& logits,
                                 const Tensor& gate_up, const Tensor& down, const Routes& routes,
                                 const Tensor& grad_output, const MoeFfnOptions& options,
                                 const Tensor& grad_balance_loss, const Tensor& grad_z_loss) try {
  Tensors tensors = choices(routes);
  tensors.emplace("input", input);
  tensors.emplace("gate_up", gate_up);
  tensors.emplace("down", down);
  tensors.emplace("weights", routes.weights);
  tensors.emplace("grad_output", grad_output);
  Options named;
  set_expert(named, options);
  if (options.route.capacity)
    named["rows"] = *options.route.capacity * (routes.offsets.shape().at(0) - 1);
  Tensors results = on.run("moe_ffn_backward", std::move(tensors), std::move(named),
                           {"grad_input", "grad_weights", "grad_gate_up", "grad_down"});
  return {.input = std::move(results.at("grad_input")),
          .logits = route_backward(on, logits, routes, results.at("grad_weights"),
                                   grad_balance_loss, grad_z_loss, options.route),
          .gate_up = std::move(results.at("grad_gate_up")),
          .down = std::move(results.at("grad_down"))};
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
