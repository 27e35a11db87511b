// SPDX-License-Identifier: Apache-2.0
#include "operations/moe/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "operations/common/numerics.hpp"
#include "operations/common/philox.hpp"

namespace tessera::operations::moe {
namespace {

constexpr double kUnit = kUnitF32;
constexpr double kExcluded = -std::numeric_limits<double>::infinity();
constexpr double kLeastScore = 1e-6;  // of a sigmoid

// Words 0 and 1 of a block through Box and Muller.
double normal_number(std::uint64_t seed, std::uint64_t number) {
  const auto block = philox_block(seed, number);
  const double first = (static_cast<double>(block[0] >> 8) + 1) * 0x1p-24;
  const double second = static_cast<double>(block[1] >> 8) * 0x1p-24;
  return std::sqrt(-2 * std::log(first)) * std::cos(2 * std::numbers::pi * second);
}

double log_sum_of(const std::vector<double>& of) {
  const double largest = *std::ranges::max_element(of);
  double sum = 0;
  for (const double x : of) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// How far a score in float may be off, relative: exp is off by up to 3 + 2 |x| units in GLSL, and
// its argument is a rounded difference.
double score_error(const RouteProblem& call, const Scores& scores, std::size_t token,
                   std::size_t e) {
  const std::size_t i = token * static_cast<std::size_t>(call.experts) + e;
  const double x = scores.logits[i], log_sum = scores.log_sums[token];
  if (!std::isfinite(x)) return 0;
  const double size = std::fabs(x) + (call.sigmoid ? 0 : std::fabs(log_sum));
  const double sum = call.sigmoid ? 0 : static_cast<double>(call.experts);
  return kUnit * (24 + 8 * size + sum) + 2 * scores.errors[i];
}

// In the order of choice: excluded experts come last and are not chosen.
std::vector<std::size_t> chosen(const RouteProblem& call, std::vector<double> keys, bool biased) {
  for (double& key : keys) key = std::isnan(key) ? kExcluded : key;
  const auto in_front = [](const std::vector<double>& of) {
    return [&of](std::size_t a, std::size_t b) { return of[a] > of[b]; };
  };
  const auto order = [&](const std::vector<double>& of) {
    std::vector<std::size_t> result(of.size());
    std::iota(result.begin(), result.end(), std::size_t{0});
    std::ranges::stable_sort(result, in_front(of));
    return result;
  };
  if (call.groups > 1) {
    const std::size_t size = keys.size() / static_cast<std::size_t>(call.groups);
    std::vector<double> groups;
    for (std::size_t first = 0; first < keys.size(); first += size) {
      std::vector<double> members(keys.begin() + static_cast<std::ptrdiff_t>(first),
                                  keys.begin() + static_cast<std::ptrdiff_t>(first + size));
      std::ranges::sort(members, std::greater<>());
      const bool two = biased && size > 1 && members[1] > kExcluded;
      groups.push_back(two ? members[0] + members[1] : members[0]);
    }
    const std::vector<std::size_t> ranks = order(groups);
    for (auto g = static_cast<std::size_t>(call.top_groups); g < ranks.size(); ++g)
      std::fill_n(keys.begin() + static_cast<std::ptrdiff_t>(ranks[g] * size), size, kExcluded);
  }
  std::vector<std::size_t> result = order(keys);
  result.resize(static_cast<std::size_t>(call.top_k));
  while (!result.empty() && keys[result.back()] == kExcluded) result.pop_back();
  return result;
}

}  // namespace

Scores scores_of(const RouteProblem& call, const HostTensor& logits) {
  Scores result{.logits = logits.read()};
  const auto experts = static_cast<std::size_t>(call.experts);
  result.errors.resize(result.logits.size(), 0);
  for (std::size_t i = 0; call.noise > 0 && i < result.logits.size(); ++i) {
    const double noise =
        static_cast<double>(static_cast<float>(call.noise)) * normal_number(call.seed, i);
    result.logits[i] += noise;
    // Logarithm, root and the sine's polynomial on devices.
    if (std::isfinite(result.logits[i]))
      result.errors[i] = call.noise * 0x1p-18 + kUnit * std::fabs(result.logits[i]);
  }
  std::ranges::replace_if(
      result.logits, [](double x) { return std::isnan(x); }, kExcluded);
  for (std::size_t first = 0; first < result.logits.size(); first += experts) {
    std::vector<double> kept(result.logits.begin() + static_cast<std::ptrdiff_t>(first),
                             result.logits.begin() + static_cast<std::ptrdiff_t>(first + experts));
    std::erase(kept, kExcluded);
    result.log_sums.push_back(kept.empty() ? 0 : log_sum_of(kept));
    for (std::size_t e = 0; e < experts; ++e) {
      const double x = result.logits[first + e];
      if (x == kExcluded) {
        result.scores.push_back(0);
      } else {
        result.scores.push_back(call.sigmoid ? std::max(sigmoid_of(x), kLeastScore)
                                             : std::exp(x - result.log_sums.back()));
      }
    }
  }
  return result;
}

Routing route(const RouteProblem& call, const Scores& scores, const std::vector<double>& bias) {
  const auto tokens = static_cast<std::size_t>(call.tokens);
  const auto experts = static_cast<std::size_t>(call.experts);
  const auto top_k = static_cast<std::size_t>(call.top_k);
  Routing result;
  result.ids.assign(tokens * top_k, -1);
  result.slots.assign(tokens * top_k, -1);
  result.weights.resize(tokens * top_k);
  result.totals.assign(experts, 0);
  const double most = call.capacity ? static_cast<double>(*call.capacity) : 0x1p62;
  for (std::size_t token = 0; token < tokens; ++token) {
    // Without a bias logits tell experts apart that scores no longer do.
    std::vector<double> keys;
    for (std::size_t e = 0; e < experts; ++e) {
      const double x = scores.logits[token * experts + e];
      const bool by_score = !bias.empty() && x != kExcluded;
      keys.push_back(by_score ? scores.scores[token * experts + e] + bias[e] : x);
    }
    const std::vector<std::size_t> choices = chosen(call, keys, !bias.empty());
    double sum = 0, sum_error = 0;
    for (std::size_t r = 0; r < choices.size(); ++r) {
      const std::size_t e = choices[r], i = token * top_k + r;
      result.ids[i] = static_cast<double>(e);
      if (result.totals[e] < most) {
        result.slots[i] = result.totals[e];
        sum += scores.scores[token * experts + e];
        sum_error += scores.scores[token * experts + e] * score_error(call, scores, token, e);
      }
      result.totals[e] += 1;
    }
    for (std::size_t r = 0; r < choices.size(); ++r) {
      const std::size_t i = token * top_k + r;
      if (result.slots[i] < 0) continue;
      const double score = scores.scores[token * experts + choices[r]];
      const double factor = call.renormalise ? (sum == 0 ? 0 : call.scale / sum) : call.scale;
      const double value = score * factor;
      const double relative = score_error(call, scores, token, choices[r]) +
                              (call.renormalise && sum > 0 ? sum_error / sum : 0) +
                              kUnit * static_cast<double>(8 + top_k);
      result.weights[i] = {.value = value, .bound = std::fabs(value) * relative + 0x1p-126};
    }
  }
  result.offsets.assign(1, 0);
  for (const double total : result.totals) {
    result.counts.push_back(std::min(total, most));
    result.offsets.push_back(result.offsets.back() + (call.capacity ? most : total));
  }
  if (tokens == 0) return result;
  const double count = static_cast<double>(tokens);
  for (std::size_t i = 0; i < scores.scores.size(); ++i) {
    const double part =
        call.balance * scores.scores[i] * result.totals[i % experts] / count / count;
    result.balance.value += part;
    result.balance.bound +=
        std::fabs(part) * (score_error(call, scores, i / experts, i % experts) +
                           kUnit * (16 + std::sqrt(count) + static_cast<double>(experts)));
  }
  for (std::size_t token = 0; token < tokens; ++token) {
    const double x = scores.log_sums[token], part = call.z * x * x / count;
    const double error = *std::max_element(
        scores.errors.begin() + static_cast<std::ptrdiff_t>(token * experts),
        scores.errors.begin() + static_cast<std::ptrdiff_t>((token + 1) * experts));
    result.z.value += part;
    result.z.bound += std::fabs(part) * kUnit * (32 + std::sqrt(count)) +
                      std::fabs(call.z) * 2 * std::fabs(x) *
                          (error + kUnit * static_cast<double>(experts + 8)) / count;
  }
  return result;
}

std::vector<Bounded> route_gradient(const Problem& problem, std::span<const HostTensor> tensors) {
  const auto& call = problem.as<RouteProblem>();
  const auto experts = static_cast<std::size_t>(call.experts);
  const auto top_k = static_cast<std::size_t>(call.top_k);
  const Scores scores = scores_of(call, tensors[kOfLogits]);
  const std::vector<double> ids = tensors[kOfIds].read(), slots = tensors[kOfSlots].read();
  const std::vector<double> grad_weights = tensors[kGradWeights].read();
  const double count = static_cast<double>(call.tokens);
  const double balance = problem.has(kGradBalance)
                             ? tensors[kGradBalance].read()[0] * call.balance / count / count
                             : 0;
  const double z = problem.has(kGradZ) ? tensors[kGradZ].read()[0] * call.z * 2 / count : 0;
  std::vector<double> totals(experts, 0);
  for (const double id : ids) {
    if (id >= 0 && id < static_cast<double>(experts)) totals[static_cast<std::size_t>(id)] += 1;
  }
  std::vector<Bounded> result(scores.scores.size());
  for (std::size_t token = 0; token < scores.log_sums.size(); ++token) {
    const double* const score = scores.scores.data() + token * experts;
    std::vector<double> slopes(experts), sizes(experts);
    double sum = 0, mean = 0, mean_size = 0, worst = 0;
    for (std::size_t e = 0; e < experts; ++e) {
      slopes[e] = balance * totals[e];
      sizes[e] = std::fabs(slopes[e]);
      worst = std::max(worst, score_error(call, scores, token, e));
    }
    const auto each_choice = [&](auto use) {
      for (std::size_t r = 0; r < top_k; ++r) {
        const std::size_t i = token * top_k + r;
        const bool counts = slots[i] >= 0 && ids[i] >= 0 && ids[i] < static_cast<double>(experts);
        if (counts) use(static_cast<std::size_t>(ids[i]), grad_weights[i]);
      }
    };
    each_choice([&](std::size_t e, double gradient) {
      sum += score[e];
      mean += score[e] * gradient;
      mean_size += score[e] * std::fabs(gradient);
    });
    each_choice([&](std::size_t e, double gradient) {
      if (call.renormalise && sum == 0) return;
      const double factor = call.scale / (call.renormalise ? sum : 1);
      slopes[e] += factor * (gradient - (call.renormalise ? mean / sum : 0));
      sizes[e] +=
          std::fabs(factor) * (std::fabs(gradient) + (call.renormalise ? mean_size / sum : 0));
    });
    double through = 0, through_size = 0;
    for (std::size_t e = 0; !call.sigmoid && e < experts; ++e) {
      through += slopes[e] * score[e];
      through_size += sizes[e] * score[e];
    }
    const double log_sum = scores.log_sums[token];
    for (std::size_t e = 0; e < experts; ++e) {
      const double x = scores.logits[token * experts + e], share = std::exp(x - log_sum);
      if (x == kExcluded) continue;  // 0
      double value = share * (slopes[e] - through), size = share * (sizes[e] + through_size);
      if (call.sigmoid) {
        const double plain = sigmoid_of(x), slope = plain * (1 - plain);
        value = plain < kLeastScore ? 0 : slopes[e] * slope;
        size = plain < kLeastScore ? 0 : sizes[e] * (slope + kUnit);
      }
      const double of_z = z * log_sum * share;
      const double terms = kUnit * (static_cast<double>(experts + top_k) + 16);
      result[token * experts + e] = {
          .value = value + of_z,
          .bound = (size + std::fabs(of_z)) *
                       (4 * worst + kUnit * 8 * (std::fabs(x) + std::fabs(log_sum)) + terms +
                        4 * scores.errors[token * experts + e]) +
                   0x1p-126};
    }
  }
  return result;
}

void reference_route(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<RouteProblem>();
  const Routing result = route(call, scores_of(call, tensors[kLogits]),
                               problem.has(kBias) ? tensors[kBias].read() : std::vector<double>{});
  std::vector<double> weights;
  for (const Bounded& weight : result.weights) weights.push_back(weight.value);
  tensors[kIds].write(result.ids);
  tensors[kSlots].write(result.slots);
  tensors[kWeights].write(weights);
  tensors[kCounts].write(result.counts);
  tensors[kOffsets].write(result.offsets);
  if (problem.has(kBalanceLoss))
    tensors[kBalanceLoss].write(std::vector<double>{result.balance.value});
  if (problem.has(kZLoss)) tensors[kZLoss].write(std::vector<double>{result.z.value});
}

void reference_route_backward(const Problem& problem, std::span<HostTensor> tensors) {
  std::vector<double> values;
  for (const Bounded& gradient : route_gradient(problem, tensors)) values.push_back(gradient.value);
  tensors[kGradLogits].write(values);
}

}  // namespace tessera::operations::moe
