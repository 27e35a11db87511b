// SPDX-License-Identifier: Apache-2.0
#include "operations/common/eight_bits.hpp"

#include <algorithm>
#include <string>

#include "operations/common/validate.hpp"

namespace tessera::operations {

bool is_eight_bits(DType dtype) { return bits_of(dtype) == 8; }

Scaling read_scale(const Problem& problem, std::size_t slot, std::size_t of, TermAxis terms,
                   std::int64_t block) {
  Scaling scaling;
  if (!problem.has(slot)) return scaling;
  const Shape& shape = problem.spec(slot).shape;
  const Shape& whole = problem.spec(of).shape;
  const auto extent = [](const Shape& from, std::size_t from_right) {
    return from_right < from.size() ? from[from.size() - 1 - from_right] : 1;
  };
  std::string wanted;
  bool fits = true;
  for (std::size_t i = 0; i < std::max(shape.size(), whole.size()); ++i) {
    const std::int64_t got = extent(shape, i), all = extent(whole, i);
    const std::int64_t blocks = all / block + (all % block == 0 ? 0 : 1);
    const bool along_terms = i == (terms == TermAxis::kColumns ? 0U : 1U);
    std::string choices = "1";
    const auto add = [&](std::int64_t one) {
      if (one != 1) choices += " or " + std::to_string(one);
    };
    if (!along_terms) add(all);
    if (i < 2) add(blocks);
    const bool blocked = i < 2 && got == blocks && got != 1 && (along_terms || got != all);
    fits = fits && (got == 1 || blocked || (!along_terms && got == all));
    if (blocked) (along_terms ? scaling.terms : scaling.blocks) = true;
    wanted = choices + (wanted.empty() ? "" : ", ") + wanted;
  }
  require(problem, fits,
          operand_text(problem, slot) + " does not fit " + operand_text(problem, of) +
              ", of which it may have [" + wanted + "] elements: one, each, or blocks of " +
              std::to_string(block) + ", of terms one or blocks");
  return scaling;
}

void require_factors(const Problem& problem, std::size_t a_slot, std::size_t b_slot,
                     const std::array<std::size_t, 2>& scales, std::int64_t terms) {
  const auto& name = [&](std::size_t slot) { return problem.operation->operands[slot].name; };
  const DType a = problem.spec(a_slot).dtype, b = problem.spec(b_slot).dtype;
  const auto kind = [](DType dtype) {
    return dtype == DType::kI8 ? 2 : is_eight_bits(dtype) ? 1 : 0;
  };
  require(problem, kind(a) == kind(b),
          name(a_slot) + " " + std::string(to_string(a)) + " and " + name(b_slot) + " " +
              std::string(to_string(b)) +
              " do not multiply: both are i8, or of 8-bit floats, or of f32, f16 and bf16");
  for (const std::size_t slot : scales) {
    if (!problem.has(slot) || is_eight_bits(a)) continue;
    require(problem, false, operand_text(problem, slot) + " belongs to operands of 8 bits");
  }
  constexpr std::int64_t kMostTerms = (std::int64_t{1} << 17) - 1;
  require(problem, a != DType::kI8 || terms <= kMostTerms,
          "products of i8 are added up in 32 bits, which hold " + std::to_string(kMostTerms) +
              " terms, and " + operand_text(problem, a_slot) + " has " + std::to_string(terms));
}

DType output_of_factors(const Problem& problem, std::size_t a,
                        const std::array<std::size_t, 2>& scales) {
  const DType own = problem.spec(a).dtype;
  if (!is_eight_bits(own)) return own;
  const bool scaled = problem.has(scales[0]) || problem.has(scales[1]);
  return own == DType::kI8 && !scaled ? DType::kI32 : DType::kF32;
}

}  // namespace tessera::operations
