// SPDX-License-Identifier: Apache-2.0
// Made-up calls of route and its gradient, and what they must give.
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "operations/common/cases.hpp"
#include "operations/common/numerics.hpp"
#include "operations/moe/oracle.hpp"

namespace tessera::operations::moe {
namespace {

struct RouteCase {
  const char* name;
  const char* why;
  std::int64_t tokens, experts, top_k;
  Options options{};
  bool bias = false, losses = true;
  const char* data = "normal";
};

std::vector<RouteCase> table() {
  const std::string sigmoid = "sigmoid";
  return {
      {"plain", "as most models route", 37, 8, 2},
      {"sigmoid",
       "scores of their own, a bias for the choice, groups by their two best",
       29,
       16,
       4,
       {{"score", sigmoid},
        {"groups", std::int64_t{4}},
        {"top_groups", std::int64_t{2}},
        {"scale", 2.5}},
       true},
      {"groups",
       "groups by their best",
       41,
       24,
       3,
       {{"groups", std::int64_t{6}}, {"top_groups", std::int64_t{2}}}},
      {"few",
       "fewer experts in the kept groups than choices",
       13,
       8,
       4,
       {{"groups", std::int64_t{4}}, {"top_groups", std::int64_t{1}}}},
      {"capacity",
       "choices beyond the capacity are dropped",
       64,
       8,
       2,
       {{"capacity", std::int64_t{9}}}},
      {"crowd",
       "all tokens want one expert",
       50,
       5,
       1,
       {{"capacity", std::int64_t{1}}},
       false,
       true,
       "crowd"},
      {"ties", "equal logits: the lower number is in front", 33, 12, 3, {}, false, true, "ties"},
      {"raw",
       "scores themselves are weights, no losses",
       21,
       10,
       3,
       {{"renormalise", false}, {"scale", 0.5}},
       false,
       false},
      {"noise", "logits with noise", 40, 16, 2, {{"noise", 0.7}, {"seed", std::int64_t{12345}}}},
      {"many", "more experts than items, several blocks of choices", 150, 160, 8},
      {"one", "one expert", 5, 1, 1},
      {"wild",
       "NaN is not chosen, excluded experts take no place",
       24,
       6,
       3,
       {},
       true,
       true,
       "wild"},
      {"excluded",
       "NaN and -infinity exclude their expert only, or all of a token's",
       24,
       6,
       3,
       {},
       false,
       true,
       "excluded"},
      {"excluded_sigmoid",
       "the same beside a bias",
       24,
       6,
       3,
       {{"score", sigmoid}},
       true,
       true,
       "excluded"},
      {"none", "no tokens", 0, 8, 2},
  };
}

Case make(bool backward, DType dtype, const RouteCase& from) {
  Case result{.name = from.name, .why = from.why, .options = from.options, .data = from.data};
  const auto add = [&](std::size_t slot, DType type, Shape shape) {
    result.operands[slot] = TensorSpec::contiguous(type, std::move(shape));
  };
  result.operands.resize(backward ? kGradLogits + 1 : kZLoss + 1);
  add(kLogits, dtype, {from.tokens, from.experts});
  if (backward) {
    for (const char* name : {"groups", "top_groups", "capacity"}) result.options.erase(name);
    add(kOfIds, DType::kI32, {from.tokens, from.top_k});
    add(kOfSlots, DType::kI32, {from.tokens, from.top_k});
    add(kGradWeights, DType::kF32, {from.tokens, from.top_k});
    if (from.losses) {
      add(kGradBalance, DType::kF32, {1});
      add(kGradZ, DType::kF32, {1});
    }
    return result;
  }
  result.options["top_k"] = from.top_k;
  if (from.bias) add(kBias, DType::kF32, {from.experts});
  if (from.losses) {
    add(kBalanceLoss, DType::kF32, {1});
    add(kZLoss, DType::kF32, {1});
  }
  return result;
}

std::vector<Case> cases(bool backward, DType dtype) {
  std::vector<Case> result;
  for (const RouteCase& from : table()) {
    const std::string data = from.data;  // some of them the gradient does not see
    if (backward && data != "normal" && data != "excluded") continue;
    result.push_back(make(backward, dtype, from));
  }
  if (backward) {
    result.push_back(make(backward, dtype,
                          {"twice",
                           "experts twice among a token's choices, or outside",
                           31,
                           8,
                           4,
                           {},
                           false,
                           true,
                           "twice"}));
  }
  result.push_back(make(backward, dtype, {"strided", "gaps between rows", 9, 7, 2}));
  result.back().operands[kLogits] = strided_view(dtype, {9, 7}, {0}, 4, 3);
  return result;
}

std::vector<double> logits_of(const Case& shape, std::size_t tokens, std::size_t experts,
                              std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<double> logits(tokens * experts);
  for (double& x : logits) x = 2 * normal(random);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (shape.data == "ties") logits[i] = std::round(logits[i]);
    if (shape.data == "crowd" && i % experts == 2) logits[i] = 30;
    if (shape.data == "wild" && i / experts % 4 == 1 && i % experts == i / experts % experts)
      logits[i] = std::numeric_limits<double>::quiet_NaN();
    if (shape.data != "excluded") continue;
    const std::size_t token = i / experts;
    if (token % 5 == 3 || (token % 5 == 1 && i % 3 == 0)) {
      logits[i] = i % 2 == 0 ? std::numeric_limits<double>::quiet_NaN()
                             : -std::numeric_limits<double>::infinity();
    }
  }
  return logits;
}

void fill(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<RouteProblem>();
  std::mt19937_64 random(shape.seed * 1000003 + 23);
  std::normal_distribution<double> normal;
  const auto tokens = static_cast<std::size_t>(call.tokens);
  const auto experts = static_cast<std::size_t>(call.experts);
  tensors[kLogits].write(logits_of(shape, tokens, experts, random));
  if (!call.backward) {
    if (!problem.has(kBias)) return;
    std::vector<double> bias(experts);
    for (double& x : bias) x = 0.1 * normal(random);
    if (shape.data == "wild")  // one expert is left
      std::fill_n(bias.begin() + 1, experts - 1, -std::numeric_limits<double>::infinity());
    tensors[kBias].write(bias);
    return;
  }
  // Choices as a call makes them, of which some are dropped and some excluded.
  const Routing routed = route(call, scores_of(call, tensors[kOfLogits]), {});
  std::vector<double> ids = routed.ids, slots = routed.slots;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % 7 == 2) slots[i] = -1;
    if (i % 11 == 5) ids[i] = slots[i] = -1;
    if (shape.data != "twice") continue;
    if (i % 4 != 0) ids[i] = ids[i - i % 4];
    if (i % 13 == 9) ids[i] = static_cast<double>(experts) + 5;
  }
  tensors[kOfIds].write(ids);
  tensors[kOfSlots].write(slots);
  for (const std::size_t slot : {kGradWeights, kGradBalance, kGradZ}) {
    if (!problem.has(slot)) continue;
    std::vector<double> values(static_cast<std::size_t>(problem.spec(slot).elements()));
    for (double& value : values) value = normal(random);
    tensors[slot].write(values);
  }
}

void add_exact(std::vector<Expectation>& to, std::size_t slot, std::vector<double> values) {
  if (values.empty()) return;
  std::vector<double> bounds(values.size(), 0);
  to.push_back({.slot = slot, .values = std::move(values), .bounds = std::move(bounds)});
}

void add(std::vector<Expectation>& to, const Problem& problem, std::size_t slot,
         std::span<const Bounded> from) {
  if (!problem.has(slot) || from.empty()) return;
  const DType dtype = problem.spec(slot).dtype;
  Expectation expected{.slot = slot};
  for (const auto& [value, bound] : from) {
    expected.values.push_back(value);
    expected.bounds.push_back(bound + storage_unit(dtype) * (std::fabs(value) + bound) +
                              smallest_number(dtype));
  }
  to.push_back(std::move(expected));
}

std::vector<Expectation> expect(const Problem& problem, std::span<HostTensor> tensors,
                                const Arithmetic&, double /*max_flops*/) {
  const auto& call = problem.as<RouteProblem>();
  std::vector<Expectation> expected;
  if (call.backward) {
    add(expected, problem, kGradLogits, route_gradient(problem, tensors));
    return expected;
  }
  Routing result = route(call, scores_of(call, tensors[kLogits]),
                         problem.has(kBias) ? tensors[kBias].read() : std::vector<double>{});
  add_exact(expected, kIds, std::move(result.ids));
  add_exact(expected, kSlots, std::move(result.slots));
  add_exact(expected, kCounts, std::move(result.counts));
  add_exact(expected, kOffsets, std::move(result.offsets));
  add(expected, problem, kWeights, result.weights);
  add(expected, problem, kBalanceLoss, std::span(&result.balance, 1));
  add(expected, problem, kZLoss, std::span(&result.z, 1));
  return expected;
}

}  // namespace

Workload route_workload(bool backward) {
  Workload workload;
  workload.cases = [backward](const StorageTypes& types) { return cases(backward, types); };
  workload.benchmarks = [backward](const StorageTypes& types) {
    return std::vector<Case>{
        make(backward, types, {"t16384_e64_k6", "a batch of a small mixture", 16384, 64, 6}),
        make(backward, types,
             {"t256_e256_k8", "a decode of a large one", 256, 256, 8, {}, false, false})};
  };
  workload.fill = fill;
  workload.expect = expect;
  return workload;
}

}  // namespace tessera::operations::moe
