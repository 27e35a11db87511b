// SPDX-License-Identifier: Apache-2.0
#include "operations/cells/random.hpp"

#include <string>
#include <utility>

#include "operations/cells_core/problem.hpp"

namespace tessera::testing {
namespace {

using operations::cells::Cell;
using operations::cells::CellProblem;
using operations::cells::CellSlots;

// Around vectors, panels and blocks of batch entries.
constexpr std::int64_t kBatches[] = {0, 1, 2, 3, 4, 7, 9, 17, 33}, kTokens[] = {0, 1, 2, 3, 6, 9};
constexpr std::int64_t kWidths[] = {1, 2, 3, 7, 8, 13, 15, 16, 17, 31, 32, 33, 64, 65, 70};
constexpr std::int64_t kMostProducts = 1000000;  // what the oracle pays for
constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr std::pair<Cell, const char*> kCells[] = {
    {Cell::kLstm, "lstm"}, {Cell::kGru, "gru"}, {Cell::kRnn, "rnn"}};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : draw_(seed) { result_.shape.seed = seed; }

  RandomCall make() {
    const auto [cell, name] = draw_.of(kCells);
    const bool backward = draw_.chance(0.5);
    call_.slots = operations::cells::cell_slots(cell, backward);
    result_.operation = std::string(name) + (backward ? "_backward" : "");
    result_.dtype = draw_.of(kTypes);
    result_.shape.operands.resize(call_.slots.count);
    draw_sizes();
    draw_operands();
    draw_results();
    result_.shape.options["reverse"] = draw_.chance(0.3);
    if (cell == Cell::kRnn)
      result_.shape.options["activation"] = std::string(draw_.chance(0.5) ? "relu" : "tanh");
    result_.shape.name = result_.shape.data + describe_operands(result_.shape);
    result_.shape.why = "drawn at random";
    result_.kernel = draw_.word();
    return std::move(result_);
  }

 private:
  void draw_sizes() {
    const Cell cell = call_.slots.cell;
    call_.gates = operations::cells::gates_of(cell);
    call_.batch = draw_.of(kBatches);
    call_.tokens = draw_.of(kTokens);
    call_.features = draw_.of(kWidths);
    call_.outputs = call_.hidden = draw_.of(kWidths);
    call_.directions = 1 + draw_.below(2);
    call_.projects = cell == Cell::kLstm && draw_.chance(0.3);
    if (call_.projects) call_.outputs = draw_.of(kWidths);
    while (call_.rows() * call_.products() > kMostProducts) {
      call_.batch = (call_.batch + 1) / 2;
      call_.tokens = (call_.tokens + 1) / 2;
      if (call_.rows() == 1) break;
    }
  }

  // `merges`: kernels take the first two axes as one.
  void put(bool wanted, std::size_t slot, const Shape& shape, bool merges = false) {
    if (!wanted || slot == kNoOperand) return;
    auto& spec = result_.shape.operands[slot];
    spec = TensorSpec::contiguous(result_.dtype, shape);
    if (draw_.chance(merges ? 0.1 : 0.5)) vary_strides(draw_, *spec);
  }

  void draw_operands() {
    const CellSlots& slots = call_.slots;
    const std::int64_t rows = call_.gates * call_.hidden;
    const Shape states{call_.directions, call_.batch, call_.outputs};
    const Shape cells{call_.directions, call_.batch, call_.hidden};
    put(true, slots.input, {call_.batch, call_.tokens, call_.features});
    put(true, slots.weight_ih, {call_.directions, rows, call_.features}, true);
    put(true, slots.weight_hh, {call_.directions, rows, call_.outputs});
    put(call_.projects, slots.weight_hr, {call_.directions, call_.outputs, call_.hidden});
    put(draw_.chance(0.5), slots.bias_ih, {call_.directions, rows}, true);
    put(draw_.chance(0.5), slots.bias_hh, {call_.directions, rows});
    put(draw_.chance(0.5), slots.h0, states);
    put(draw_.chance(0.5), slots.c0, cells);
    if (draw_.chance(0.5)) {
      result_.shape.operands[slots.lengths] = TensorSpec::contiguous(DType::kI32, {call_.batch});
      result_.shape.data = draw_.chance(0.2) ? "out_of_range" : "lengths";
    }
    if (draw_.chance(0.5)) {
      auto& reserve = result_.shape.operands[slots.reserve];
      reserve = TensorSpec::contiguous(DType::kF32,
                                       {call_.batch, call_.tokens, call_.directions, call_.kept()});
      reserve->offset = draw_.below(9);
      if (draw_.chance(0.05)) vary_strides(draw_, *reserve);
    }
  }

  void draw_results() {
    const CellSlots& slots = call_.slots;
    const Shape states{call_.directions, call_.batch, call_.outputs};
    const Shape cells{call_.directions, call_.batch, call_.hidden};
    const Shape outputs{call_.batch, call_.tokens, call_.directions * call_.outputs};
    put(draw_.chance(0.5), slots.output, outputs);
    put(draw_.chance(0.5), slots.h_n, states);
    put(draw_.chance(0.5), slots.c_n, cells);
    if (!slots.backward()) return;
    put(true, slots.grad_output, outputs);
    put(draw_.chance(0.5), slots.grad_h_n, states);
    put(draw_.chance(0.5), slots.grad_c_n, cells);
    const bool all = draw_.chance(0.4);
    for (const auto& [gradient, operand] : slots.gradients()) {
      if (gradient == kNoOperand || !result_.shape.operands[operand]) continue;
      const bool merges =
          operand == slots.input || operand == slots.weight_ih || operand == slots.bias_ih;
      put(operand == slots.weight_hh || all || draw_.chance(0.5), gradient,
          result_.shape.operands[operand]->shape, merges);
    }
  }

  Draw draw_;
  RandomCall result_;
  CellProblem call_;
};

}  // namespace

RandomCall random_cells(std::uint64_t seed) { return Maker(seed).make(); }

RandomSummary check_random_cells(const Context& context, std::uint64_t first, std::uint64_t count,
                                 const std::function<void(const RandomResult&)>& each) {
  return run_seeds(
      first, count, [&](std::uint64_t seed) { return run_call(context, random_cells(seed)); },
      each);
}

}  // namespace tessera::testing
