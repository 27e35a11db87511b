// SPDX-License-Identifier: Apache-2.0
// Calls at the edges of matrix units' tiles. Their extents are multiples of 8, which tensor copies
// need.
#include <string>

#include "operations/grouped_core/made_case.hpp"

namespace tessera::operations::matmul {

std::vector<Case> grouped_unit_edges(const GroupedSlots& slots, DType dtype, const Config& config) {
  const std::int64_t rows = config.get("BLOCK_M", 128), columns = config.at("BLOCK_N");
  const std::int64_t terms = config.get("BLOCK_K", size_of(dtype) == 4 ? 32 : 64);
  std::vector<GroupedCase> table;
  for (const int step : {-1, 0, 1})
    table.push_back({.name = step < 0   ? "edge-1"
                             : step > 0 ? "edge+1"
                                        : "edge",
                     .why = "groups at the edge of a tile in every direction",
                     .m = 2 * (rows + (slots.transposed ? 8 : 1) * step),
                     .n = columns + 8 * step,
                     .k = terms + 8 * step,
                     .groups = 2,
                     .data = "equal"});
  const std::int64_t n = columns + 24, k = terms + 40;
  table.push_back({.name = "unit_ragged",
                   .why = "groups that end within tiles",
                   .m = 1000,
                   .n = n,
                   .k = 3 * k,
                   .groups = 9});
  table.push_back({.name = "unit_turned",
                   .why = "weights by terms, groups of a row, none and many",
                   .m = 600,
                   .n = n,
                   .k = k,
                   .groups = 70,
                   .transpose_rhs = true});
  table.push_back({.name = "unit_share",
                   .why = "some of the groups, rows of others before and behind",
                   .m = 400,
                   .n = n,
                   .k = k,
                   .groups = 8,
                   .data = "short",
                   .first = 2,
                   .held = 4,
                   .existing = true});
  table.push_back({.name = "unit_hostile",
                   .why = "sizes that are anything, and NaN in all that is of no row",
                   .m = 320,
                   .n = 72,
                   .k = k,
                   .groups = 11,
                   .data = "hostile",
                   .first = 1,
                   .held = 9,
                   .existing = true});
  table.push_back({.name = "unit_garbage",
                   .why = "the ends of 32 bits as sizes",
                   .m = 320,
                   .n = 72,
                   .k = k,
                   .groups = 70,
                   .data = "garbage"});
  table.push_back({.name = "unit_gaps",
                   .why = "unused memory between rows",
                   .m = 200,
                   .n = 104,
                   .k = k,
                   .groups = 3,
                   .gap = 8,
                   .more = 8});
  table.push_back({.name = "unit_columns",
                   .why = "all operands by columns",
                   .m = 264,
                   .n = 136,
                   .k = k,
                   .groups = 3,
                   .existing = true,
                   .columns = true});
  table.push_back({.name = "unit_floats",
                   .why = "sums that are not rounded",
                   .m = 304,
                   .n = n,
                   .k = k,
                   .groups = 4,
                   .output = "f32"});
  table.push_back({.name = "unit_many",
                   .why = "more tiles than work-groups",
                   .m = 17 * rows + 8,
                   .n = 10 * columns + 8,
                   .k = 72,
                   .groups = 5});
  std::vector<Case> cases;
  for (const GroupedCase& from : table) {
    if (slots.transposed && from.transpose_rhs) continue;
    cases.push_back(make_case(slots, dtype, from));
  }
  return cases;
}

}  // namespace tessera::operations::matmul
