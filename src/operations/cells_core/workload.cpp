// SPDX-License-Identifier: Apache-2.0
// The calls that tests, benchmarks and the tuner make up, and their operands.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "operations/cells_core/expect.hpp"
#include "operations/common/cases.hpp"

namespace tessera::operations::cells {
namespace {

struct Sizes {
  std::int64_t batch = 1, tokens = 1, features = 1, hidden = 1, directions = 1;
  bool biases = false, states = false, lengths = false, reverse = false, relu = false;
  bool strided = false, reserve = false;
  std::int64_t outputs = 0;  // of a projection of h
};

Case make_case(const CellSlots& slots, DType dtype, std::string name, std::string why,
               const Sizes& sizes, std::string data = "normal") {
  Case result{.name = std::move(name), .why = std::move(why), .data = std::move(data)};
  result.operands.resize(slots.count);
  const auto put = [&](bool wanted, std::size_t slot, const Shape& shape, bool strided = false) {
    if (!wanted || slot == kNoOperand) return;
    result.operands[slot] = strided ? strided_view(dtype, shape, {1, 0, 2}, 3, 5)
                                    : TensorSpec::contiguous(dtype, shape);
  };
  CellProblem call{.slots = slots, .hidden = sizes.hidden};
  call.gates = gates_of(slots.cell);
  call.projects = sizes.outputs > 0;
  call.outputs = call.projects ? sizes.outputs : sizes.hidden;
  const std::int64_t rows = call.gates * sizes.hidden, width = call.outputs;
  const Shape outputs{sizes.batch, sizes.tokens, sizes.directions * width};
  const Shape states{sizes.directions, sizes.batch, width};
  const Shape cells{sizes.directions, sizes.batch, sizes.hidden};
  put(true, slots.input, {sizes.batch, sizes.tokens, sizes.features}, sizes.strided);
  put(true, slots.weight_ih, {sizes.directions, rows, sizes.features});
  put(true, slots.weight_hh, {sizes.directions, rows, width}, sizes.strided);
  put(sizes.outputs > 0, slots.weight_hr, {sizes.directions, width, sizes.hidden}, sizes.strided);
  put(sizes.biases, slots.bias_ih, {sizes.directions, rows});
  put(sizes.biases, slots.bias_hh, {sizes.directions, rows});
  for (const std::size_t slot : {slots.h0, slots.h_n, slots.grad_h_n})
    put(sizes.states, slot, states, sizes.strided);
  for (const std::size_t slot : {slots.c0, slots.c_n, slots.grad_c_n})
    put(sizes.states, slot, cells, sizes.strided);
  if (sizes.lengths)
    result.operands[slots.lengths] = TensorSpec::contiguous(DType::kI32, {sizes.batch});
  put(sizes.strided, slots.output, outputs, true);
  put(true, slots.grad_output, outputs, sizes.strided);
  if (sizes.reserve) {
    result.operands[slots.reserve] = TensorSpec::contiguous(
        DType::kF32, {sizes.batch, sizes.tokens, sizes.directions, call.kept()});
    result.operands[slots.reserve]->offset = 6;
  }
  for (const auto& [gradient, operand] : slots.gradients()) {
    if (gradient == kNoOperand || !result.operands[operand]) continue;
    result.operands[gradient] = TensorSpec::contiguous(dtype, result.operands[operand]->shape);
  }
  result.options["reverse"] = sizes.reverse;
  if (slots.cell == Cell::kRnn)
    result.options["activation"] = std::string(sizes.relu ? "relu" : "tanh");
  return result;
}

std::vector<Case> conformance(const CellSlots& slots, DType dtype) {
  std::vector<Case> table;
  const auto add = [&](const char* name, const char* why, const Sizes& sizes,
                       const char* data = "normal") {
    table.push_back(make_case(slots, dtype, name, why, sizes, data));
  };
  Sizes small{.batch = 3, .tokens = 7, .features = 5, .hidden = 13};
  small.biases = small.states = true;
  add("small", "sizes that divide no tile and no vector", small);
  Sizes both = small;
  both.directions = 2;
  both.lengths = true;
  add("both", "two directions; what lies behind lengths may be NaN", both, "lengths");
  add("single", "one token, one feature, nothing that may be left out", {});
  Sizes reverse{.batch = 2, .tokens = 5, .features = 8, .hidden = 16};
  reverse.reverse = reverse.lengths = reverse.biases = true;
  add("reverse", "from the last token of each sequence to its first", reverse, "lengths");
  Sizes wide{.batch = 17, .tokens = 4, .features = 33, .hidden = 128};
  wide.biases = true;
  add("wide", "several tiles of rows and of units", wide);
  Sizes many{.batch = 2, .tokens = 64, .features = 3, .hidden = 33};
  many.states = true;
  add("long", "roundings of many steps", many);
  Sizes strided = small;
  strided.strided = true;
  strided.directions = 2;
  add("strided", "unusual order, odd gaps and offsets", strided);
  Sizes empty = small;
  empty.tokens = 0;
  add("no_tokens", "seq 0: states are passed on", empty);
  Sizes none = both;
  none.batch = 0;
  add("no_batch", "nothing to do", none);
  add("out_of_range", "lengths below 0 and beyond the tokens", both, "out_of_range");
  add("saturated", "gates at the ends of their range", small, "saturated");
  if (!slots.backward()) add("not_finite", "NaN stays in its batch entry", small, "not_finite");
  Sizes kept = both;
  kept.reserve = kept.relu = kept.reverse = true;
  add("reserve", "what forward leaves to the way back, 0 behind lengths; of rnn by relu", kept,
      "lengths");
  Sizes kept_wide = wide;
  kept_wide.reserve = true;
  add("reserve_wide", "of several tiles of rows and of units", kept_wide);
  if (slots.backward())
    add("reserve_faint", "gradients below what 16 bits have, which weights amplify", kept, "faint");
  if (slots.weight_hr != kNoOperand) {
    Sizes projected = both;
    projected.outputs = 5;
    add("projected", "h is a projection, of two directions with lengths", projected, "lengths");
    projected.reserve = true;
    add("reserve_projected", "which has what is projected, too", projected, "lengths");
    projected.reserve = false;
    projected.strided = true;
    projected.outputs = 70;
    add("projected_up", "h has more numbers than c, of several tiles, in unusual order", projected,
        "lengths");
  }
  if (slots.cell == Cell::kRnn) {
    small.relu = true;
    add("relu", "the other activation", small);
  }
  return table;
}

std::vector<double> made_up_lengths(const CellProblem& call, const std::string& data,
                                    std::mt19937_64& generator) {
  std::vector<double> lengths(static_cast<std::size_t>(call.batch));
  for (double& length : lengths)
    length = static_cast<double>(generator() % static_cast<std::uint64_t>(call.tokens + 1));
  if (lengths.size() > 1) lengths[1] = 0;
  if (!lengths.empty()) lengths[0] = static_cast<double>(call.tokens);
  if (data == "out_of_range" && lengths.size() > 2) {
    lengths[1] = -3;
    lengths[2] = std::numeric_limits<std::int32_t>::max();
  }
  return lengths;
}

// Rows of the batch entries, with NaN behind their lengths.
void write_rows(HostTensor& tensor, std::vector<double> values,
                const std::vector<double>& lengths) {
  const Shape& shape = tensor.spec.shape;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const auto length =
        static_cast<std::int64_t>(std::clamp(lengths[b], 0.0, static_cast<double>(shape[1])));
    const auto batch = static_cast<std::int64_t>(b);
    std::fill(values.begin() + (batch * shape[1] + length) * shape[2],
              values.begin() + (batch + 1) * shape[1] * shape[2], std::nan(""));
  }
  tensor.write(values);
}

// Gates and states as steps may have left them, of steps that have nothing to do with each other:
// gradients that take them are not those of a forward computed again. 0 behind lengths.
std::vector<double> made_up_reserve(const CellProblem& call, const std::vector<double>& lengths,
                                    std::mt19937_64& generator) {
  std::normal_distribution<double> normal;
  std::vector<double> values;
  const auto add = [&](std::int64_t count, const auto& function) {
    for (std::int64_t i = 0; i < count; ++i) values.push_back(function(normal(generator)));
  };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto tanh = [](double x) { return std::tanh(x); };
  const auto any = [](double x) { return x; };
  for (std::int64_t step = 0; step < call.rows() * call.directions; ++step) {
    const std::int64_t token = step / call.directions % call.tokens;
    const auto entry = static_cast<std::size_t>(step / call.directions / call.tokens);
    const auto first = static_cast<std::ptrdiff_t>(values.size());
    if (call.slots.cell == Cell::kRnn) {
      add(call.hidden, [&](double x) { return call.relu ? std::max(x, 0.0) : std::tanh(x); });
    } else {
      add(2 * call.hidden, sigmoid);
      add(call.hidden, tanh);
      if (call.slots.cell == Cell::kLstm) add(call.hidden, sigmoid);
      add(call.hidden, any);
    }
    if (call.projects) add(call.hidden, tanh);
    add(call.outputs, tanh);
    if (!lengths.empty() && static_cast<double>(token) >= lengths[entry])
      std::fill(values.begin() + first, values.end(), 0);
  }
  return values;
}

void fill(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CellProblem>();
  const CellSlots& slots = call.slots;
  std::mt19937_64 generator(shape.seed * 1000003);
  std::normal_distribution<double> normal;
  const double range = 1 / std::sqrt(static_cast<double>(call.hidden));
  std::uniform_real_distribution<double> uniform(-range, range);
  std::vector<double> lengths;
  if (problem.has(slots.lengths)) {
    lengths = made_up_lengths(call, shape.data, generator);
    tensors[slots.lengths].write(lengths);
  }
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    if (!problem.has(slot) || slot == slots.lengths) continue;
    if (problem.operation->operands[slot].role != Role::kInput) continue;
    if (slot == slots.reserve) {
      tensors[slot].write(made_up_reserve(call, lengths, generator));
      continue;
    }
    std::vector<double> values(static_cast<std::size_t>(problem.spec(slot).elements()));
    const bool weights = slot == slots.weight_ih || slot == slots.weight_hh ||
                         slot == slots.weight_hr || slot == slots.bias_ih || slot == slots.bias_hh;
    for (double& value : values) value = weights ? uniform(generator) : normal(generator);
    if (slot == slots.input && shape.data == "saturated") {
      for (double& value : values) value *= 60;
    }
    // Gradients that f16 has few bits for, which steps back make much larger; those of rnn fastest.
    if (shape.data == "faint" && (slot == slots.grad_output || slot == slots.weight_hh)) {
      const double growth = slots.cell == Cell::kRnn ? 4 : 16;
      for (double& value : values) value *= slot == slots.grad_output ? 0x1p-16 : growth;
    }
    if (slot == slots.input && shape.data == "not_finite") values[values.size() / 2] = std::nan("");
    if (slot == slots.input || slot == slots.grad_output) {
      write_rows(tensors[slot], std::move(values), lengths);
    } else {
      tensors[slot].write(values);
    }
  }
}

}  // namespace

Workload cells_workload(const CellSlots& slots) {
  Workload workload;
  workload.cases = [slots](DType dtype) { return conformance(slots, dtype); };
  workload.edge_cases = [](DType, const Config&) { return std::vector<Case>{}; };
  workload.benchmarks = [slots](DType dtype) {
    std::vector<Case> table;
    Sizes cpu{.batch = 32, .tokens = 256, .features = 512, .hidden = 512};
    Sizes gpu{.batch = 64, .tokens = 512, .features = 1024, .hidden = 1024};
    cpu.biases = gpu.biases = true;
    table.push_back(make_case(slots, dtype, "b32_t256_h512", "a layer of usual size", cpu));
    table.push_back(make_case(slots, dtype, "b64_t512_h1024", "a wide layer", gpu));
    cpu.reserve = gpu.reserve = true;
    table.push_back(make_case(slots, dtype, "b32_t256_h512_reserve", "a step of training", cpu));
    table.push_back(make_case(slots, dtype, "b64_t512_h1024_reserve", "of the wide layer", gpu));
    return table;
  };
  workload.fill = fill;
  workload.expect = [](const Problem& problem, std::span<HostTensor> tensors,
                       const Arithmetic& arithmetic, double max_flops) {
    return expect_cells(problem, tensors, arithmetic, max_flops);
  };
  workload.flops = [](const Problem& problem) {
    const auto& call = problem.as<CellProblem>();
    const double forward =
        2.0 * static_cast<double>(call.rows()) * static_cast<double>(call.products());
    return call.slots.backward() ? (call.runs_forward() ? 3 : 2) * forward : forward;
  };
  return workload;
}

}  // namespace tessera::operations::cells
