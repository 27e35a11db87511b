// SPDX-License-Identifier: Apache-2.0
#include "operations/state_space_core/layout.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "operations/common/boundaries.hpp"
#include "operations/common/launch.hpp"
#include "operations/common/validate.hpp"

namespace tessera::operations::state_space {
namespace {

constexpr std::int64_t kMaxLength = std::int64_t{1} << 30;  // positions add in 32 bits
constexpr std::int64_t kMostGroups = 65535;                 // along an axis, on any device

}  // namespace

Layout read_layout(const Problem& problem, std::size_t rows, std::size_t cu_seqlens) {
  const Shape& shape = problem.spec(rows).shape;
  require(problem, shape.size() == 3, operand_text(problem, rows) + " must be [batch, seq, dim]");
  Layout layout{.batch = shape[0], .tokens = shape[1], .dim = shape[2], .sequences = shape[0]};
  require(problem, layout.tokens < kMaxLength, "sequences must be shorter than 2^30 tokens");
  layout.packed = problem.has(cu_seqlens);
  if (!layout.packed) return layout;
  const Shape& boundaries = problem.spec(cu_seqlens).shape;
  require(problem, boundaries.size() == 1 && boundaries[0] >= 1,
          operand_text(problem, cu_seqlens) +
              " must have one axis, of one element more than there are sequences");
  require(problem, layout.batch == 1,
          operand_text(problem, rows) + " must have batch 1, for cu_seqlens packs it");
  layout.sequences = boundaries[0] - 1;
  return layout;
}

void check_operand(const Problem& problem, std::size_t slot, const Shape& shape, DType dtype,
                   bool wide) {
  if (!problem.has(slot)) return;
  require_shape(problem, slot, shape);
  const DType got = problem.spec(slot).dtype;
  require(problem, got == dtype || (wide && got == DType::kF32),
          operand_text(problem, slot) + " must be " + std::string(to_string(dtype)) +
              (wide && dtype != DType::kF32 ? " or f32" : ""));
}

void infer_gradient(Problem& problem, std::size_t gradient, std::size_t of) {
  if (!problem.requested[gradient]) return;
  const std::vector<Operand>& operands = problem.operation->operands;
  require(problem, problem.has(of),
          operands[gradient].name + " is wanted, but the call has no " + operands[of].name);
  problem.infer_output(gradient, problem.spec(of).dtype, problem.spec(of).shape);
}

std::string layout_key(const Problem& problem, const Layout& layout) {
  return "dtype=" + std::string(to_string(problem.dtype)) + ";dim=" + bucket(layout.dim) +
         ";tokens=" + bucket(layout.tokens) + ";sequences=" + bucket(layout.sequences) +
         (layout.packed ? ";packed" : "");
}

std::int64_t search_rounds(const Layout& layout) {
  if (!layout.packed) return 0;
  return std::bit_width(static_cast<std::uint64_t>(layout.sequences) + 1);
}

std::vector<Sequence> sequences_of(const Layout& layout, std::span<HostTensor> tensors,
                                   std::size_t cu_seqlens) {
  std::vector<Sequence> sequences;
  if (!layout.packed) {
    for (std::int64_t batch = 0; batch < layout.batch; ++batch)
      sequences.push_back({.batch = batch, .end = layout.tokens});
    return sequences;
  }
  std::int64_t before = 0;
  bool is_first = true;
  for (const double value : tensors[cu_seqlens].read()) {
    const std::int64_t next = std::clamp(static_cast<std::int64_t>(value), before, layout.tokens);
    if (!is_first) sequences.push_back({.begin = before, .end = next});
    is_first = false;
    before = next;
  }
  return sequences;
}

std::vector<ErrorKind> boundary_errors() {
  return {{.kind = "offset_outside_tokens",
           .operand = "cu_seqlens",
           .sentence = "lies outside of the tokens"},
          {.kind = "offset_decreases",
           .operand = "cu_seqlens",
           .sentence = "is less than the one before it"}};
}

std::vector<Raised> raises_of(const Layout& layout, std::span<HostTensor> tensors,
                              std::size_t cu_seqlens) {
  std::vector<Raised> raised;
  if (!layout.packed) return raised;
  const std::vector<double> boundaries = tensors[cu_seqlens].read();
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    const auto index = static_cast<std::uint32_t>(i);
    if (boundaries[i] < 0 || boundaries[i] > static_cast<double>(layout.tokens))
      raised.push_back({.error = SPACE_ERROR_OUTSIDE, .index = index});
    if (i > 0 && boundaries[i] < boundaries[i - 1])
      raised.push_back({.error = SPACE_ERROR_DECREASES, .index = index});
  }
  return raised;
}

Operand cu_seqlens_operand() {
  return {.name = "cu_seqlens",
          .optional = true,
          .shape = "[sequences + 1]",
          .dtypes = {DType::kI32},
          .doc = "sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of batch entry 0"};
}

void fill_boundaries(const Layout& layout, const Case& shape, HostTensor& cu_seqlens,
                     std::mt19937_64& generator) {
  const bool gap = shape.data == "gap";
  const std::int64_t first = gap ? layout.tokens / 5 : 0;
  const std::int64_t last = gap ? layout.tokens - layout.tokens / 7 : layout.tokens;
  std::vector<double> boundaries(static_cast<std::size_t>(layout.sequences) + 1);
  for (double& boundary : boundaries)
    boundary = static_cast<double>(first + static_cast<std::int64_t>(generator() % 64) *
                                               (last - first) / 64);
  std::ranges::sort(boundaries);
  boundaries.front() = static_cast<double>(first);
  if (boundaries.size() >= 6) {
    boundaries.back() = static_cast<double>(last);
    boundaries[1] = boundaries[0];  // empty sequences at the start and between
    boundaries[3] = boundaries[2];
    if (shape.data == "out_of_range") {
      boundaries.front() = std::numeric_limits<std::int32_t>::min();
      boundaries[1] = -3;
      boundaries[boundaries.size() - 2] = static_cast<double>(layout.tokens + 1);
      boundaries.back() = std::numeric_limits<std::int32_t>::max();
    }
    if (shape.data == "decreasing") std::reverse(boundaries.begin() + 2, boundaries.end());
  }
  cu_seqlens.write(boundaries);
}

void hide_rows(const Layout& layout, const std::vector<Sequence>& sequences, HostTensor& rows) {
  std::vector<bool> held(static_cast<std::size_t>(layout.tokens), false);
  for (const Sequence& sequence : sequences)
    std::fill(held.begin() + sequence.begin, held.begin() + sequence.end, true);
  std::vector<double> values = rows.read();
  const std::size_t row = values.size() / std::max<std::size_t>(held.size(), 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!held[i / row]) values[i] = std::nan("");
  }
  rows.write(values);
}

void spoil(const Layout& layout, HostTensor& rows, std::size_t slot) {
  std::vector<double> values = rows.read();
  const std::size_t row = values.size() / static_cast<std::size_t>(layout.batch * layout.tokens);
  const std::size_t token = static_cast<std::size_t>(layout.tokens) / 2 + slot;
  values.at(token * row + (row / 2 + slot) % row) =
      slot % 2 == 0 ? std::nan("") : std::numeric_limits<double>::infinity();
  rows.write(values);
}

abi::SpaceRows rows_of(const Problem& problem, std::size_t slot) {
  if (!problem.has(slot)) return {};
  const TensorSpec& spec = problem.spec(slot);
  const auto narrow = [](std::int64_t value) { return static_cast<abi::u32>(value); };
  return {narrow(spec.offset), narrow(spec.strides[0]), narrow(spec.strides[1]),
          narrow(spec.strides[2])};
}

abi::u32 type_of(const Problem& problem, std::size_t slot, abi::u32 shift) {
  return problem.has(slot) ? dtype_axis(problem.spec(slot).dtype) << shift : 0;
}

bool by_vectors(const Problem& problem, std::span<const std::size_t> slots, std::int64_t vector) {
  const auto fits = [vector](std::int64_t number) { return number % vector == 0; };
  return std::ranges::all_of(slots, [&](std::size_t slot) {
    if (!problem.has(slot)) return true;
    const TensorSpec& spec = problem.spec(slot);
    return spec.strides.back() == 1 && fits(spec.offset) && fits(spec.shape.back()) &&
           std::all_of(spec.strides.begin(), spec.strides.end() - 1, fits);
  });
}

Dim3 groups_of(std::int64_t groups) {
  if (groups == 0) return {0, 0, 0};
  const std::int64_t x = std::min(groups, kMostGroups);
  return {static_cast<std::uint32_t>(x), ceil_div(groups, x)};
}

std::vector<Define> typed_axes(const Problem& /*problem*/, const DeviceProfile& profile) {
  if (profile.backend != Backend::kVulkan)
    return {{"NVIDIA_PTX", has(profile.features, Feature::kNvidiaPtx) ? 1U : 0U}};
  return {{"STORAGE16", has(profile.features, Feature::kStorage16) ? 1U : 0U}};
}

Pass boundaries_pass(const Layout& (*layout_of)(const Problem&), std::size_t cu_seqlens) {
  return operations::boundaries_pass(cu_seqlens, kNoOperand,
                                     [layout_of](const Problem& problem, const Config&) {
                                       return Boundaries{.tokens = layout_of(problem).tokens,
                                                         .outside = SPACE_ERROR_OUTSIDE,
                                                         .decreases = SPACE_ERROR_DECREASES};
                                     });
}

std::int64_t boundary_vectors(const Layout& layout) {
  return layout.packed ? ceil_div(layout.sequences + 1, 4) : 0;
}

}  // namespace tessera::operations::state_space
