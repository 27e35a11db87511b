// SPDX-License-Identifier: Apache-2.0
// A call of cumsum after validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::recurrence {

enum CumsumSlot : std::size_t { kCumsumInput, kCumsumOffsets, kCumsumOutput };

struct CumsumCall {
  std::int64_t batch = 0, tokens = 0, heads = 0, dim = 1;
  std::int64_t chunk = 1;                   // tokens; all of a sequence is one chunk
  std::optional<std::int64_t> sequences{};  // packed
  bool reverse = false, head_first = false;
  double scale = 1;

  std::size_t token_axis() const { return head_first ? 2 : 1; }
  std::size_t head_axis() const { return head_first ? 1 : 2; }
};

void validate_cumsum(Problem& problem);
void reference_cumsum(const Problem& problem, std::span<HostTensor> tensors);
std::vector<Raised> raises_cumsum(const Problem& problem, std::span<HostTensor> tensors);
Workload cumsum_workload();
Way cumsum_columns_way();

}  // namespace tessera::operations::recurrence
