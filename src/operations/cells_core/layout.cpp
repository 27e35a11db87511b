// SPDX-License-Identifier: Apache-2.0
#include "operations/cells_core/layout.hpp"

#include <algorithm>
#include <utility>

#include "operations/common/launch.hpp"

namespace tessera::operations::cells {
std::uint32_t kind_of(const Problem& problem) {
  switch (call_of(problem).slots.cell) {
    case Cell::kLstm:
      return CELL_LSTM;
    case Cell::kGru:
      return CELL_GRU;
    default:
      return CELL_RNN;
  }
}

CellLayout layout_of(const Problem& problem) {
  const CellProblem& call = call_of(problem);
  const auto count = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
  };
  CellLayout layout;
  std::uint64_t next = 0;
  const auto take = [&](std::uint64_t floats) {
    return std::exchange(next, next + (floats + 15) / 16 * 16);
  };
  const std::int64_t entries = call.directions * call.batch;
  const auto pack = [&](PackedProduct& packed, std::int64_t units, std::int64_t depth,
                        std::int64_t vectors, std::int64_t units_of_panel) {
    packed.units = units;
    packed.depth = depth;
    packed.vectors = vectors;
    packed.panels = ceil_div(units, units_of_panel);
    packed.terms = (depth + 3) / 4 * 4;
    packed.weights =
        take(count(call.directions * packed.panels * vectors * CELL_LANES, packed.terms));
    packed.state_size = count(entries, packed.terms);
    packed.state = take(2 * packed.state_size);
  };
  const auto pack_wide = [&](PackedProduct& packed, std::int64_t units, std::int64_t depth) {
    pack(packed, units, depth, CELL_BACK_VECTORS, CELL_BACK_VECTORS * CELL_LANES);
  };
  if (call.runs_forward()) {
    pack(layout.forward, call.hidden, call.outputs, call.gates, CELL_LANES);
    if (call.projects) pack_wide(layout.project, call.outputs, call.hidden);
  }
  layout.product = take(count(call.rows(), call.width()));
  layout.bias = take(count(call.directions, call.gates * call.hidden));
  layout.lengths = take(count(call.batch, 1));
  layout.cell = take(count(entries, call.hidden));
  if (call.slots.backward()) {
    pack_wide(layout.backward, call.outputs, call.gates * call.hidden);
    layout.carry = take(count(entries, call.outputs));
    if (!call.has_reserve) layout.kept = take(count(call.rows(), call.directions * call.kept()));
    if (call.projects) {
      pack_wide(layout.project_backward, call.hidden, call.outputs);
      layout.of_h = take(count(call.rows(), call.directions * call.outputs));
    }
    if (call.slots.cell == Cell::kGru) layout.turned = take(count(call.rows(), call.width()));
    if (copies_input(problem)) layout.clean = take(count(call.rows(), call.features));
  }
  layout.end = next + CELL_LANES;  // kernels of processors read whole vectors
  return layout;
}

KeptPlace kept_place(const Problem& problem) {
  const CellProblem& call = call_of(problem);
  if (!call.has_reserve) return {.first = layout_of(problem).kept};
  return {.slot = call.slots.reserve,
          .first = static_cast<std::uint64_t>(problem.spec(call.slots.reserve).offset)};
}

Refusal rejects_cells(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const CellProblem& call = call_of(problem);
  const CellSlots& slots = call.slots;
  constexpr std::uint32_t kMostGroups = 65535;
  const std::uint32_t rows = config.get("ROWS", kMostGroups);  // of ways that launch groups by them
  if (rows == 0) return "takes at least one batch entry at a time, and ROWS is 0";
  if (ceil_div(call.batch, rows) > kMostGroups)
    return "takes up to 65535 work-groups of batch entries";
  std::vector<std::size_t> merged{slots.weight_ih};
  if (slots.backward()) {
    for (const std::size_t slot : {slots.grad_input, slots.grad_weight_ih, slots.grad_bias_ih})
      merged.push_back(slot);
  }
  merged.push_back(slots.bias_ih);
  for (const std::size_t slot : merged) {
    if (!problem.has(slot) || folded(problem.spec(slot))) continue;
    return "takes " + problem.operation->operands[slot].name +
           " with its first two axes as one, and their strides are apart";
  }
  if (call.has_reserve && !problem.spec(slots.reserve).is_contiguous())
    return "takes reserve as one contiguous piece, and it is not";
  if (layout_of(problem).end >= std::uint64_t{1} << 31)
    return "counts scratch memory to 2^31 floats, and the call takes more";
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  return rejects_long_operands(problem, profile, {});
}

}  // namespace tessera::operations::cells
