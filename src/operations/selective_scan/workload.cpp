// SPDX-License-Identifier: Apache-2.0
// The calls that tests, benchmarks and the tuner make up, and what is expected of them.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"
#include "operations/common/cases.hpp"
#include "operations/selective_scan/call.hpp"

namespace tessera::operations::state_space {
namespace {

struct Sizes {
  std::int64_t batch = 1, tokens = 1, dim = 8, groups = 1, states = 16;
  bool d = false, z = false, bias = false, softplus = false, initial = false, final = false;
  std::int64_t sequences = -1;  // packed, where not negative
  bool wide = false;            // a, d and delta_bias in f32, whatever the dtype of u
  std::int64_t gap = -1;        // not negative: unusual strides, and this many elements behind rows
};

Case make_case(bool backward, DType dtype, std::string name, std::string why, const Sizes& sizes,
               std::string data) {
  Case result{.name = std::move(name), .why = std::move(why), .data = std::move(data)};
  result.operands.resize(backward ? kScanGradInitial + 1 : kScanFinal + 1);
  const auto put = [&](bool wanted, std::size_t slot, TensorSpec spec) {
    if (wanted) result.operands[slot] = std::move(spec);
  };
  const auto spec = [&](DType type, const Shape& shape) {
    if (sizes.gap < 0) return TensorSpec::contiguous(type, shape);
    const Shape order = shape.size() == 4 ? Shape{2, 0, 1} : Shape{1, 0};
    return strided_view(type, shape, order, sizes.gap, sizes.gap);
  };
  const std::int64_t sequences = sizes.sequences < 0 ? sizes.batch : sizes.sequences;
  const Shape rows{sizes.batch, sizes.tokens, sizes.dim};
  const Shape factors{sizes.batch, sizes.tokens, sizes.groups, sizes.states};
  const Shape states{sequences, sizes.dim, sizes.states};
  const DType channels = sizes.wide ? DType::kF32 : dtype;
  put(true, kScanU, spec(dtype, rows));
  put(true, kScanDelta, spec(dtype, rows));
  put(true, kScanA, TensorSpec::contiguous(channels, {sizes.dim, sizes.states}));
  put(true, kScanB, spec(dtype, factors));
  put(true, kScanC, spec(dtype, factors));
  put(sizes.d, kScanD, TensorSpec::contiguous(channels, {sizes.dim}));
  put(sizes.z, kScanZ, spec(dtype, rows));
  put(sizes.bias, kScanBias, TensorSpec::contiguous(channels, {sizes.dim}));
  put(sizes.initial, kScanInitial, spec(DType::kF32, states));
  put(sizes.sequences >= 0, kScanOffsets,
      TensorSpec::contiguous(DType::kI32, {sizes.sequences + 1}));
  put(backward || sizes.gap >= 0, kScanOutput, spec(dtype, rows));
  put(sizes.final, kScanFinal, spec(DType::kF32, states));
  if (backward) {
    for (const auto& [gradient, operand] : kScanGradients)
      result.operands[gradient] = result.operands[operand];
  }
  result.options["delta_softplus"] = sizes.softplus;
  return result;
}

std::vector<Case> conformance(bool backward, DType dtype) {
  std::vector<Case> table;
  const auto add = [&](const char* name, const char* why, const Sizes& sizes,
                       const char* data = "normal") {
    table.push_back(make_case(backward, dtype, name, why, sizes, data));
  };
  Sizes small{.batch = 2, .tokens = 37, .dim = 21, .states = 13};
  small.d = small.z = small.bias = small.softplus = true;
  add("small", "sizes that divide no span, block or vector", small);
  Sizes states = small;
  states.initial = states.final = true;
  states.dim = 24;
  states.groups = 3;
  states.states = 16;
  add("states", "from one state to another, in groups of channels", states);
  Sizes packed{.tokens = 61, .dim = 18, .groups = 2};
  packed.z = packed.d = packed.initial = packed.final = true;
  packed.sequences = 6;
  add("packed", "sequences of length 0 pass their state on; rows of none are 0 and may hold NaN",
      packed, "gap");
  Sizes decode = states;
  decode.batch = 5;
  decode.tokens = 1;
  add("decode", "one token: states from one tensor to another", decode);
  add("plain", "no skip, no gate, no bias, no state", {.batch = 2, .tokens = 9, .dim = 5});
  add("single", "one token, one channel, one state", {.dim = 1, .states = 1});
  Sizes none = states;
  none.tokens = 0;
  add("no_tokens", "seq 0: the state is passed on", none);
  Sizes large = states;
  large.tokens = 20;
  large.states = 30;
  large.dim = 6;
  add("large_state", "states in several parts", large);
  packed.bias = packed.softplus = packed.wide = true;
  add("wide", "a, d and delta_bias in f32", packed, "gap");
  add("out_of_range", "boundaries below 0 and beyond the tokens", packed, "out_of_range");
  add("decreasing", "boundaries that decrease: sequences do not overlap", packed, "decreasing");
  Sizes full = packed;
  full.tokens = 150;
  full.states = 32;
  add("full", "blocks of tokens inside of sequences, of as many states as items take", full, "gap");
  packed.sequences = 90;
  add("many_sequences", "more sequences than tokens", packed);
  packed.sequences = 0;
  packed.initial = packed.final = false;
  add("no_sequences", "cu_seqlens of one element: all rows are 0", packed, "gap");
  Sizes strided = states;
  strided.gap = 3;
  add("strided", "unusual order, odd gaps and offsets", strided);
  strided.gap = 4;
  add("strided_aligned", "unusual order, but vectors are aligned", strided);
  Sizes strong{.tokens = 48, .dim = 10, .initial = true, .final = true};
  add("strong", "decays of 0 and of -80 a step, and of all between", strong, "strong");
  add("growing", "steps below 0 and rates above it: states grow", strong, "growing");
  if (!backward) add("burst", "an empty state stays empty, however fast it grows", strong, "burst");
  add("not_finite", "NaN and infinity reach what comes after their token only", states,
      "not_finite");
  Sizes long_call{.tokens = 400, .dim = 3, .states = 4};
  long_call.softplus = long_call.final = true;
  add("long", "many more tokens than a span", long_call);
  return table;
}

std::vector<Case> edge_cases(bool backward, DType dtype, const Config& config) {
  std::vector<Case> table;
  const auto span = static_cast<std::int64_t>(config.get("SPAN", 16));
  for (const int step : {-1, 1}) {
    Sizes sizes{.tokens = 2 * span + step, .dim = 150, .groups = 2};
    // As many states as the items of a channel take.
    sizes.states = static_cast<std::int64_t>(config.get("ROWS", 16)) * config.get("WG_Y", 1);
    sizes.d = sizes.z = sizes.bias = sizes.softplus = sizes.initial = sizes.final = true;
    if (sizes.tokens > 200) continue;
    table.push_back(make_case(backward, dtype, step < 0 ? "tokens-1" : "tokens+1",
                              "the edge of the tokens of a span; channels of several items", sizes,
                              "normal"));
  }
  return table;
}

// Steps as models have them: of 0.001 to 0.1 behind softplus, or as they are.
double made_up_delta(const ScanCall& call, const std::string& data, std::mt19937_64& generator) {
  std::normal_distribution<double> normal;
  const double x = normal(generator);
  const std::uint64_t kind = generator() % 8;
  if (data == "strong") return kind == 0 ? 0 : kind < 4 ? 80 : std::fabs(x);
  if (data == "growing") return 0.05 * x;
  return call.softplus ? x - 2 : 0.2 * std::fabs(x);
}

void fill(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<ScanCall>();
  std::mt19937_64 generator(shape.seed * 1000003);
  std::normal_distribution<double> normal;
  if (call.layout.packed) fill_boundaries(call.layout, shape, tensors[kScanOffsets], generator);
  const std::vector<Sequence> sequences = sequences_of(call.layout, tensors, kScanOffsets);
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    if (!problem.has(slot) || problem.operation->operands[slot].role != Role::kInput) continue;
    if (slot == kScanOffsets) continue;
    const auto count = static_cast<std::size_t>(problem.spec(slot).elements());
    std::vector<double> values = drawn_numbers(count, [&] {
      if (slot == kScanDelta) return made_up_delta(call, shape.data, generator);
      const double x = normal(generator);
      if (slot != kScanA || shape.data == "growing") return x;
      return shape.data == "strong" ? -1 : -std::fabs(x);
    });
    // Ten steps that grow beyond what a float holds, of a state that is 0.
    if (shape.data == "burst") {
      const auto rows = static_cast<std::size_t>(10 * call.layout.dim);
      if (slot == kScanInitial) std::ranges::fill(values, 0.0);
      if (slot == kScanDelta) std::fill_n(values.begin(), rows, -50.0);
      if (slot == kScanU) std::fill_n(values.begin(), rows, 0.0);
      if (slot == kScanA) std::ranges::fill(values, -1.0);
    }
    kernel::write_repeated(tensors[slot], values);
    const bool has_rows = slot <= kScanDelta || slot == kScanB || slot == kScanC ||
                          slot == kScanZ || (call.backward && slot == kScanGradOutput);
    if (has_rows && shape.data == "gap") hide_rows(call.layout, sequences, tensors[slot]);
    if (has_rows && shape.data == "not_finite") spoil(call.layout, tensors[slot], slot);
  }
}

// A product with the decay, that of a step, its sum, and a product and sum of the output; backward
// twice for states and their gradients, and thrice for what is made of them.
double flops_of(const Problem& problem) {
  const auto& call = problem.as<ScanCall>();
  const auto rows = static_cast<double>(call.layout.batch * call.layout.tokens * call.layout.dim);
  return (call.backward ? 16.0 : 6.0) * rows * static_cast<double>(call.states);
}

// Some channels at equal distances, where all would take too long.
std::vector<Expectation> expect(const Problem& problem, std::span<HostTensor> tensors,
                                const Arithmetic& /*arithmetic*/, double max_flops) {
  const auto& call = problem.as<ScanCall>();
  const double share = 8 * flops_of(problem) / max_flops;
  const std::int64_t stride = call.backward || share <= 1
                                  ? 1
                                  : std::min(static_cast<std::int64_t>(share) + 1, call.layout.dim);
  std::vector<Expectation> expected =
      expectations_of(problem, scan_outputs(problem, tensors, stride));
  if (stride == 1) return expected;
  for (Expectation& one : expected) {
    const std::size_t inner =
        one.slot == kScanFinal ? static_cast<std::size_t>(call.states) : std::size_t{1};
    Expectation some{.slot = one.slot};
    for (std::size_t i = 0; i < one.values.size(); ++i) {
      const auto channel = static_cast<std::int64_t>(i / inner) % call.layout.dim;
      if (channel % stride != 0) continue;
      some.elements.push_back(i);
      some.values.push_back(one.values[i]);
      some.bounds.push_back(one.bounds[i]);
    }
    one = std::move(some);
  }
  return expected;
}

}  // namespace

// Kinds of data: "normal"; the boundaries of fill_boundaries(), where "gap" has NaN in rows of no
// sequence; "strong" decays; "growing" states; "burst", large growth before there is a state;
// "not_finite", NaN and infinity in some tokens.
Workload scan_workload(bool backward) {
  Workload workload;
  workload.cases = [backward](DType dtype) { return conformance(backward, dtype); };
  workload.edge_cases = [backward](DType dtype, const Config& config) {
    return edge_cases(backward, dtype, config);
  };
  workload.benchmarks = [backward](DType dtype) {
    Sizes prompt{.tokens = backward ? 512 : 2048, .dim = 1536};
    prompt.d = prompt.z = prompt.bias = prompt.softplus = prompt.wide = true;
    const std::string name = "t" + std::to_string(prompt.tokens) + "_d1536_n16";
    std::vector<Case> table{make_case(backward, dtype, name, "a prompt", prompt, "normal")};
    if (backward) return table;
    Sizes decode = prompt;
    decode.batch = 64;
    decode.tokens = 1;
    decode.initial = decode.final = true;
    table.push_back(make_case(backward, dtype, "b64_t1_d1536_n16",
                              "decoding: states are read and written", decode, "normal"));
    return table;
  };
  workload.fill = fill;
  workload.expect = expect;
  workload.flops = flops_of;
  return workload;
}

}  // namespace tessera::operations::state_space
