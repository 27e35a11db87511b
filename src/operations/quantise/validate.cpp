// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/tensors/checked.hpp"
#include "kernel/option_access.hpp"
#include "operations/quantise/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::quantised {
namespace {

std::int64_t blocks_along(std::int64_t extent, std::int64_t each) {
  return extent / each + (extent % each == 0 ? 0 : 1);
}

void read_matrices(const Problem& problem, std::size_t slot, CodesProblem& call) {
  const Shape& shape = problem.spec(slot).shape;
  require(problem, !shape.empty(), operand_text(problem, slot) + " must be [..., columns]");
  call.columns = shape.back();
  if (shape.size() > 1) call.rows = shape[shape.size() - 2];
  for (std::size_t axis = 0; axis + 2 < shape.size(); ++axis)
    call.batches = saturating_mul(call.batches, shape[axis]);
}

// Sizes of blocks; where an option is not set, as many as `groups` and `talls` say.
void read_blocks_of(const Problem& problem, CodesProblem& call, std::int64_t groups,
                    std::int64_t talls) {
  const std::int64_t columns = std::max<std::int64_t>(call.columns, 1);
  const std::int64_t rows = std::max<std::int64_t>(call.rows, 1);
  // Blocks that are longer than a row, or taller than a matrix, end with it.
  call.group = std::min(
      integer_option(problem, "group_size", 1).value_or(blocks_along(columns, groups)), columns);
  call.group_rows =
      std::min(integer_option(problem, "group_rows", 1).value_or(blocks_along(rows, talls)), rows);
  require(problem, call.group == columns || call.group % 32 == 0,
          "groups have a multiple of 32 columns, not " + std::to_string(call.group));
}

// Of blocks that hold their scales, all is said by the layout.
bool read_layout(const Problem& problem, CodesProblem& call) {
  call.layout = layout_of(problem);
  if (call.layout == Layout::kPlain) return false;
  for (const char* const name : {"group_size", "group_rows"})
    require(problem, std::holds_alternative<std::monostate>(problem.option(name)),
            std::string("blocks of a layout have 32 columns of a row: no ") + name);
  require(problem, !kernel::bool_option(problem, "dynamic"),
          "blocks of a layout hold their scales: none are dynamic");
  call.codes = DType::kU8;
  call.group = QUANT_CHUNK;
  return true;
}

Shape scale_shape(const CodesProblem& call, const Shape& floats) {
  Shape shape = floats;
  shape.back() = call.groups();
  if (shape.size() > 1) shape[shape.size() - 2] = call.talls();
  return shape;
}

void finish_codes(Problem& problem, CodesProblem call, std::size_t given) {
  require(problem, !is_packed(call.codes) || call.columns % 2 == 0,
          operand_text(problem, given) + " has rows that end within a byte of codes");
  require(problem, !call.is_dynamic || call.codes == DType::kI8,
          "dynamic scales are those of i8, and codes are " + std::string(to_string(call.codes)));
  require(
      problem, !problem.has(call.slots.zero) || is_unsigned_code(call.codes),
      "zero points are those of u8 and u4, and codes are " + std::string(to_string(call.codes)));
  problem.key = "floats=" + std::string(to_string(problem.dtype)) +
                ";codes=" + std::string(to_string(call.codes)) +
                ";blocks=" + bucket(call.blocks()) + ";rows=" + bucket(call.group_rows) +
                ";group=" + bucket(call.group) +
                ";zero=" + (problem.has(call.slots.zero) ? "1" : "0") +
                ";layout=" + std::to_string(static_cast<int>(call.layout));
  problem.set_details(std::move(call));
}

}  // namespace

CodesSlots quantise_slots() { return {}; }
CodesSlots dequantise_slots() { return {.floats = 3, .codes = 0, .scale = 1, .zero = 2}; }

std::int64_t CodesProblem::talls() const { return blocks_along(rows, group_rows); }
std::int64_t CodesProblem::groups() const { return blocks_along(columns, group); }

std::size_t CodesProblem::block_of(std::int64_t element) const {
  const std::int64_t row = element / columns, batch = row / rows;
  const std::int64_t tall = row % rows / group_rows, column = element % columns / group;
  return static_cast<std::size_t>((batch * talls() + tall) * groups() + column);
}

bool is_unsigned_code(DType dtype) { return dtype == DType::kU8 || dtype == DType::kU4; }

double largest_code(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return 127;
    case DType::kU8:
      return 255;
    case DType::kI4:
      return 7;
    case DType::kU4:
      return 15;
    case DType::kE4M3FN:
      return 448;
    default:
      return 57344;
  }
}

void validate_quantise(Problem& problem) {
  CodesProblem call{.slots = quantise_slots()};
  const CodesSlots& slots = call.slots;
  problem.dtype = problem.spec(slots.floats).dtype;
  read_matrices(problem, slots.floats, call);
  constexpr DType kTypes[] = {DType::kI8, DType::kU8,     DType::kI4,
                              DType::kU4, DType::kE4M3FN, DType::kE5M2};
  const DType codes =
      kTypes[kernel::choice_option(problem, "dtype", {"i8", "u8", "i4", "u4", "e4m3fn", "e5m2"})];
  if (read_layout(problem, call)) {
    // i8 is what a call has that does not say it.
    require(problem, codes == DType::kU8 || codes == DType::kI8,
            "blocks of a layout are bytes, u8, and dtype is " + std::string(to_string(codes)));
    const Shape& floats = problem.spec(slots.floats).shape;
    require(problem, call.columns % QUANT_CHUNK == 0,
            "blocks have 32 floats, and rows of input " + std::to_string(call.columns));
    Shape bytes = floats;
    bytes.back() = saturating_mul(call.groups(), block_bytes(call.layout));
    problem.infer_output(slots.codes, DType::kU8, bytes);
    problem.infer_output(slots.scale, DType::kF32, scale_shape(call, floats));
    require(problem, !problem.requested[slots.zero], "blocks have no zero points");
    finish_codes(problem, std::move(call), slots.floats);
    return;
  }
  call.codes = codes;
  call.is_dynamic = kernel::bool_option(problem, "dynamic");
  read_blocks_of(problem, call, 1, std::max<std::int64_t>(call.rows, 1));
  const Shape& floats = problem.spec(slots.floats).shape;
  const Shape scales = scale_shape(call, floats);
  problem.infer_output(slots.codes, call.codes, floats);
  problem.infer_output(slots.scale, DType::kF32, scales);
  if (problem.requested[slots.zero]) problem.infer_output(slots.zero, call.codes, scales);
  finish_codes(problem, std::move(call), slots.floats);
}

void validate_dequantise(Problem& problem) {
  CodesProblem call{.slots = dequantise_slots()};
  const CodesSlots& slots = call.slots;
  call.codes = problem.spec(slots.codes).dtype;
  call.is_dynamic = kernel::bool_option(problem, "dynamic");
  constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  problem.dtype = kTypes[kernel::choice_option(problem, "dtype", {"f32", "f16", "bf16"})];
  read_matrices(problem, slots.codes, call);
  if (read_layout(problem, call)) {
    Shape floats = problem.spec(slots.codes).shape;
    const std::int64_t bytes = block_bytes(call.layout);
    require(problem, problem.spec(slots.codes).dtype == DType::kU8,
            operand_text(problem, slots.codes) + " must be u8: bytes of blocks");
    require(problem, call.columns % bytes == 0,
            "blocks have " + std::to_string(bytes) + " bytes, and rows of codes " +
                std::to_string(call.columns));
    call.columns = floats.back() = call.columns / bytes * QUANT_CHUNK;
    require(problem, !problem.has(slots.scale) && !problem.has(slots.zero),
            "blocks have scales of their own, and the call has scale or zero_point");
    problem.infer_output(slots.floats, problem.dtype, floats);
    finish_codes(problem, std::move(call), slots.codes);
    return;
  }
  require(problem, problem.has(slots.scale), "codes in layout 'plain' need scale");
  const Shape &codes = problem.spec(slots.codes).shape, &given = problem.spec(slots.scale).shape;
  require(problem, given.size() == codes.size(),
          operand_text(problem, slots.scale) + " must have the axes of codes");
  read_blocks_of(problem, call, std::max<std::int64_t>(given.back(), 1),
                 given.size() > 1 ? std::max<std::int64_t>(given[given.size() - 2], 1) : 1);
  const Shape scales = scale_shape(call, codes);
  require_shape(problem, slots.scale, scales);
  if (problem.has(slots.zero)) {
    require_shape(problem, slots.zero, scales);
    require(problem, problem.spec(slots.zero).dtype == call.codes,
            operand_text(problem, slots.zero) + " must have the dtype of codes, " +
                std::string(to_string(call.codes)));
  }
  problem.infer_output(slots.floats, problem.dtype, codes);
  finish_codes(problem, std::move(call), slots.codes);
}

}  // namespace tessera::operations::quantised
