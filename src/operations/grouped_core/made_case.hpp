// SPDX-License-Identifier: Apache-2.0
// A line of a table of grouped products, and the call that is made of it.
#pragma once

#include <cstdint>
#include <vector>

#include "operations/grouped_core/problem.hpp"

namespace tessera::operations::matmul {

struct GroupedCase {
  const char* name;
  const char* why;
  std::int64_t m = 1, n = 1, k = 1, groups = 1;
  const char* data = "ragged";
  std::int64_t first = 0, held = -1;  // -1: all from the first on
  bool transpose_rhs = false, existing = false;
  std::int64_t gap = 0;  // unused elements between rows, of lhs; of others `more` each
  std::int64_t more = 2;
  bool columns = false;        // rows lie where columns would
  const char* rhs_dtype = "";  // empty = that of lhs
  const char* output = "";
  Shape scale_lhs{}, scale_rhs{};  // empty: there is none
};

Case make_case(const GroupedSlots& slots, DType dtype, const GroupedCase& from);

// Groups at the edges of matrix units' tiles, of operands that tensor copies take.
std::vector<Case> grouped_unit_edges(const GroupedSlots& slots, DType dtype, const Config& config);

}  // namespace tessera::operations::matmul
