// SPDX-License-Identifier: Apache-2.0
// Grouped calls as products of views: the gradients are two more of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operations/grouped_core/args.h"
#include "operations/grouped_core/problem.hpp"
#include "operations/matmul_core/core/args.h"

namespace tessera::operations::matmul {

// What a kernel is bound to.
enum GroupedRole : std::size_t {
  kLeft,
  kRight,
  kAdded,
  kProduct,
  kLeftScale,
  kRightScale,
  kGroupedRoles
};

struct GroupedStage {
  enum class Step : std::uint8_t { kForward, kGradLhs, kGradRhs, kGradExisting };
  std::string name{};
  Step step = Step::kForward;
  bool over_terms = false;  // terms are ragged, else rows
  bool turned = false;      // of calls with transpose_rhs: the transposed product
  std::array<std::size_t, kGroupedRoles> slots{};
};

// Every stage of a record, those with ragged rows first.
std::vector<GroupedStage> grouped_stages(const GroupedSlots& slots);

struct GroupedProduct {
  std::int64_t m = 0, n = 0, k = 0;  // the ragged one counts all groups
  std::array<DType, kGroupedRoles> dtypes{};
  abi::GroupedArgs args{};
  std::uint32_t blocks = MATMUL_BLOCKS_NONE;  // of terms
  bool is_empty() const { return m == 0 || n == 0; }
};

// Nothing where the call has no such product.
std::optional<GroupedProduct> grouped_product(const Problem& problem, const GroupedStage& stage);

// The same for kernels that share their text with those of matmul: batches are the groups that are
// held, batch2 is the step from one to the next. A call of no such product has zeros.
abi::MatmulArgs matmul_arguments(const Problem& problem, const GroupedStage& stage);

// Items of the work list at most, where an item has up to `tile` rows.
std::uint64_t grouped_items(const Problem& problem, const GroupedStage& stage, std::uint32_t tile);
// Bytes of scratch: the work list and the ends of groups, for stages of either kind.
std::uint64_t grouped_scratch(const Problem& problem, std::uint32_t tile);

// Passes of a way: `product_of` makes the one that multiplies, before the first of each kind of
// stage comes the work list. `tile` says how many rows an item has.
using GroupedTile = std::uint32_t (*)(const Config&);
std::vector<Pass> grouped_passes(const GroupedSlots& slots, GroupedTile tile,
                                 Pass (*product_of)(const GroupedStage&));

// The pass that makes the work list which `stages` share, one kind of them. The way adds arguments,
// which begin with those that list_arguments() makes: of `items` items at most, of `tile` rows; 0:
// an item is a group.
Pass grouped_list_pass(const GroupedSlots& slots, const std::vector<GroupedStage>& stages);
abi::GroupedListArgs list_arguments(const Problem& problem, std::uint64_t items,
                                    std::uint32_t tile);

// What every way refuses: operands or counts beyond 32 bits.
Refusal rejects_grouped(const Problem& problem, const DeviceProfile& profile, std::uint32_t tile);
// The constants A_TYPE, B_TYPE, RAGGED and BLOCKS of a stage.
std::vector<Define> grouped_constants(const Problem& problem, const GroupedStage& stage);

}  // namespace tessera::operations::matmul
