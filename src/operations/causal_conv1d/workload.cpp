// SPDX-License-Identifier: Apache-2.0
// The calls that tests, benchmarks and the tuner make up.
#include <random>
#include <string>
#include <utility>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"
#include "operations/causal_conv1d/expect.hpp"
#include "operations/common/cases.hpp"

namespace tessera::operations::state_space {
namespace {

struct Sizes {
  std::int64_t batch = 1, tokens = 1, dim = 8, width = 4;
  bool bias = false, silu = false, initial = false, final = false;
  std::int64_t sequences = -1;  // packed, where not negative
  bool wide = false;            // weight and bias in f32, whatever the dtype of input
  std::int64_t gap = -1;        // not negative: unusual strides, and this many elements behind rows
};

Case make_case(bool backward, DType dtype, std::string name, std::string why, const Sizes& sizes,
               std::string data) {
  Case result{.name = std::move(name), .why = std::move(why), .data = std::move(data)};
  result.operands.resize(backward ? kConvGradInitial + 1 : kConvFinal + 1);
  const auto put = [&](bool wanted, std::size_t slot, TensorSpec spec) {
    if (wanted) result.operands[slot] = std::move(spec);
  };
  const auto spec = [&](const Shape& shape) {
    if (sizes.gap < 0) return TensorSpec::contiguous(dtype, shape);
    return strided_view(dtype, shape, {1, 0}, sizes.gap, sizes.gap);
  };
  const std::int64_t sequences = sizes.sequences < 0 ? sizes.batch : sizes.sequences;
  const Shape rows{sizes.batch, sizes.tokens, sizes.dim};
  const Shape states{sequences, sizes.width - 1, sizes.dim};
  const DType weights = sizes.wide ? DType::kF32 : dtype;
  put(true, kConvInput, spec(rows));
  put(true, kConvWeight, TensorSpec::contiguous(weights, {sizes.dim, sizes.width}));
  put(sizes.bias, kConvBias, TensorSpec::contiguous(weights, {sizes.dim}));
  put(sizes.initial, kConvInitial, spec(states));
  put(sizes.sequences >= 0, kConvOffsets,
      TensorSpec::contiguous(DType::kI32, {sizes.sequences + 1}));
  put(backward || sizes.gap >= 0, kConvOutput, spec(rows));
  put(sizes.final, kConvFinal, spec(states));
  if (backward) {
    for (const auto& [gradient, operand] : kConvGradients)
      result.operands[gradient] = result.operands[operand];
  }
  result.options["activation"] = std::string(sizes.silu ? "silu" : "none");
  return result;
}

std::vector<Case> conformance(bool backward, DType dtype) {
  std::vector<Case> table;
  const auto add = [&](const char* name, const char* why, const Sizes& sizes,
                       const char* data = "normal") {
    table.push_back(make_case(backward, dtype, name, why, sizes, data));
  };
  Sizes small{.batch = 2, .tokens = 37, .dim = 13, .bias = true, .silu = true};
  add("small", "sizes that divide no chunk and no vector", small);
  Sizes states = small;
  states.initial = states.final = true;
  states.dim = 16;
  add("states", "from one state to another", states);
  Sizes packed{
      .tokens = 161, .dim = 300, .silu = true, .initial = true, .final = true, .sequences = 6};
  add("packed", "sequences of length 0 pass their state on; rows of none are 0 and may hold NaN",
      packed, "gap");
  Sizes decode = states;
  decode.batch = 5;
  decode.tokens = 1;
  add("decode", "one token: states from one tensor to another", decode);
  Sizes plain{.batch = 2, .tokens = 9, .dim = 5};
  add("plain", "no bias, no activation, no state", plain);
  Sizes brief = states;
  brief.tokens = 2;
  add("brief", "fewer tokens than a state holds", brief);
  Sizes none = states;
  none.tokens = 0;
  add("no_tokens", "seq 0: the state is passed on", none);
  for (const std::int64_t width : {2, 8}) {
    Sizes sizes = states;
    sizes.width = width;
    sizes.dim = 72;
    add(("width_" + std::to_string(width)).c_str(), "another number of taps", sizes);
  }
  packed.bias = packed.wide = true;
  add("wide", "weights in f32", packed, "gap");
  add("out_of_range", "boundaries below 0 and beyond the tokens", packed, "out_of_range");
  add("decreasing", "boundaries that decrease: sequences do not overlap", packed, "decreasing");
  packed.sequences = 190;
  add("many_sequences", "more sequences than tokens", packed);
  packed.sequences = 0;
  packed.initial = packed.final = false;
  add("no_sequences", "cu_seqlens of one element: all rows are 0", packed, "gap");
  Sizes sixteen_bytes = packed;
  sixteen_bytes.dim = 304;
  sixteen_bytes.sequences = 6;
  sixteen_bytes.initial = sixteen_bytes.final = true;
  add("sixteen_bytes", "vectors of 16 bits, too, in packed sequences", sixteen_bytes, "gap");
  states.gap = 8;
  add("strided_sixteen_bytes", "unusual order, but vectors of 16 bits are aligned", states);
  states.gap = 3;
  add("strided", "unusual order, odd gaps and offsets", states);
  states.gap = 4;
  add("strided_aligned", "unusual order, but vectors are aligned", states);
  Sizes long_call{.tokens = 300, .dim = 70, .bias = true};
  add("long", "several chunks and work-groups", long_call);
  add("not_finite", "NaN and infinity reach the taps that they belong to", small, "not_finite");
  return table;
}

std::vector<Case> edge_cases(bool backward, DType dtype, const Config& config) {
  std::vector<Case> table;
  const auto chunk = static_cast<std::int64_t>(config.get("CHUNK", 64));
  for (const int step : {-1, 1}) {
    Sizes sizes{.tokens = 2 * chunk + step, .dim = 304, .bias = true, .silu = true};
    sizes.initial = sizes.final = true;
    table.push_back(make_case(backward, dtype, step < 0 ? "tokens-1" : "tokens+1",
                              "the edge of the tokens of a chunk", sizes, "normal"));
  }
  return table;
}

void fill(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<ConvCall>();
  std::mt19937_64 generator(shape.seed * 1000003);
  if (call.layout.packed) fill_boundaries(call.layout, shape, tensors[kConvOffsets], generator);
  const std::vector<Sequence> sequences = sequences_of(call.layout, tensors, kConvOffsets);
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    if (!problem.has(slot) || problem.operation->operands[slot].role != Role::kInput) continue;
    if (slot == kConvOffsets) continue;
    const auto count = static_cast<std::size_t>(problem.spec(slot).elements());
    kernel::write_repeated(tensors[slot], normal_numbers(count, generator));
    const bool has_rows = slot == kConvInput || (call.backward && slot == kConvGradOutput);
    if (has_rows && shape.data == "gap") hide_rows(call.layout, sequences, tensors[slot]);
    if (has_rows && shape.data == "not_finite") spoil(call.layout, tensors[slot], slot);
  }
}

}  // namespace

// Kinds of data: "normal"; the boundaries of fill_boundaries(), where "gap" has NaN in rows of no
// sequence; "not_finite", NaN and infinity in some tokens.
Workload conv_workload(bool backward) {
  Workload workload;
  workload.cases = [backward](DType dtype) { return conformance(backward, dtype); };
  workload.edge_cases = [backward](DType dtype, const Config& config) {
    return edge_cases(backward, dtype, config);
  };
  workload.benchmarks = [backward](DType dtype) {
    const Sizes prompt{.batch = 1, .tokens = 4096, .dim = 2048, .bias = true, .silu = true};
    std::vector<Case> table{
        make_case(backward, dtype, "t4096_d2048_w4", "a prompt", prompt, "normal")};
    if (backward) return table;
    Sizes decode = prompt;
    decode.batch = 256;
    decode.tokens = 1;
    decode.initial = decode.final = true;
    table.push_back(make_case(backward, dtype, "b256_t1_d2048_w4",
                              "decoding: states are read and written", decode, "normal"));
    return table;
  };
  workload.fill = fill;
  workload.expect = [](const Problem& problem, std::span<HostTensor> tensors, const Arithmetic&,
                       double /*max_flops: a few products for each element*/) {
    return expectations_of(problem, conv_outputs(problem, tensors));
  };
  return workload;
}

}  // namespace tessera::operations::state_space
