// SPDX-License-Identifier: Apache-2.0
// Calls of dispatch, combine and combine's gradient after validation. They share all of their
// inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::moe {

enum class Moves : std::uint8_t { kDispatch, kCombine, kCombineBackward };

// Operands by slot, of all three.
enum RowsSlot : std::size_t {
  kFrom,  // tokens of dispatch, rows of the others
  kExpertIds,
  kExpertSlots,
  kStarts,
  kChoiceWeights,
  kTo,  // rows of dispatch, tokens of the others: the gradient of these backward
  kGradRows,
  kGradChoiceWeights,
};

struct RowsProblem {
  Moves moves = Moves::kDispatch;
  std::int64_t tokens = 0, top_k = 0, experts = 0, rows = 0, dim = 0;
  std::int64_t choices() const { return tokens * top_k; }
  std::int64_t row_count() const { return rows; }
  std::int64_t token_count() const { return tokens; }
};

void validate_rows(Problem& problem, Moves moves);
void reference_rows(const Problem& problem, std::span<HostTensor> tensors);
std::vector<Raised> raised_by_rows(const Problem& problem, std::span<HostTensor> tensors);
Workload rows_workload(Moves moves);
Way rows_way(Moves moves);
Operation rows_operation(Moves moves);

// The row of each choice, or -1; and what is wrong.
struct ChoiceRows {
  std::vector<std::int64_t> rows{};
  std::vector<Raised> raised{};
};
ChoiceRows choice_rows(const Problem& problem, std::span<const HostTensor> tensors);

}  // namespace tessera::operations::moe
