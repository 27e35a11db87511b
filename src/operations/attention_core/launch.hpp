// SPDX-License-Identifier: Apache-2.0
// What all attention kernels are launched with, and the passes that they share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "operations/attention_core/core/pages_args.h"
#include "operations/attention_core/problem.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::attention {

inline const AttentionProblem& call_of(const Problem& problem) {
  return problem.as<AttentionProblem>();
}
inline std::uint32_t head_dim(const Problem& problem) {
  return static_cast<std::uint32_t>(call_of(problem).head_dim);
}
inline std::uint32_t value_dim(const Problem& problem) {
  return static_cast<std::uint32_t>(call_of(problem).value_dim);
}
// A number as the argument structs hold it; rejects_long_offsets() has seen to the range.
inline abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

// How a configuration cuts up a problem.
struct AttentionTiling {
  std::uint32_t rows = 1, keys = 1;  // of a tile of the map
  std::uint32_t pack = 1;            // query heads whose rows share a work-group
  std::uint32_t splits = 1;          // work-groups that share the keys of a row
  bool maps = true;                  // the kernel reads the map
  std::uint32_t listed = 0;  // rows of a kv head that an item of the work list takes; 0 = none
  // Of a list of some sequences: their least and most query rows, and the entries of four ints of
  // the list that lies before it.
  std::uint32_t least_rows = 0, most_rows = 0x7fffffff, behind = 0;
};
inline const Tunable kSplits{.id = 31, .name = "SPLITS", .fallback = 1, .launch_only = true};
// Splits that give every compute unit something to do, each with a few steps of `keys` keys; the
// pinned number where there is one. `groups` counts the work-groups of one split.
std::uint32_t filling_splits(const Problem& problem, const DeviceProfile& profile, Dim3 groups,
                             std::uint32_t keys);
// Of few rows: splits that fill the device, each long enough to be worth merging; and so many more
// where keys abound that the groups that end last do not count. Measured on an H200.
// `many` groups of a compute unit are enough.
std::uint32_t splits_of_few_rows(const Problem& problem, const DeviceProfile& profile, Dim3 groups,
                                 std::uint32_t many = 16);
// A pinned number of splits is no suggestion.
Refusal rejects_splits(const Problem& problem, const Config& config);

using Tiling = std::function<AttentionTiling(const Problem&, const Config&)>;

// Where what lies in the scratch buffer, in bytes.
struct AttentionScratch {
  std::uint64_t map = 0, map_words = 0, partials = 0, end = 0;  // the table of rows begins at 0
  std::uint64_t list = 0;    // the work list, where the map would be
  std::uint64_t biases = 0;  // of each key, where the call has some of the first keys
  std::uint64_t begins = 0;  // of paged sequences, where their rows begin: one int more than those
};
AttentionScratch scratch_of(const Problem& problem, const AttentionTiling& tiling);

abi::AttentionArgs core_arguments(const Problem& problem, const AttentionTiling& tiling);
abi::AttentionPages page_arguments(const Problem& problem);
abi::AttentionPolicyArgs policy_arguments(const Problem& problem, const AttentionTiling& tiling);
abi::AttentionScales scale_arguments(const TensorSpec& scales);

// Lines of the biases of the first keys; 0 = the call has none.
std::int64_t heads_of_position_bias(const Problem& problem);

// The operands of the policies, in the order of their bindings: the scratch buffer first.
std::vector<std::size_t> policy_bindings(const AttentionSlots& slots);

// Whether kernels with LISTED=1 take the call, and those with PAGED=1 the work list: packed
// sequences, but where a map tells what masks hide, whose tiles go on from one sequence to the
// next.
bool is_listed(const Problem& problem);
// The one work-group that makes the list, and whether its loops are too long for a device.
inline constexpr std::uint32_t kListItems = 128;
Refusal rejects_list(const Problem& problem, const AttentionTiling& tiling,
                     const DeviceProfile& profile);
// Items of the work list of a packed call, at most: each sequence begins one.
std::uint32_t listed_items(const Problem& problem, const AttentionTiling& tiling);
// Query rows of a sequence, and its keys: of packed ones the average.
std::int64_t rows_of_sequence(const Problem& problem);
std::int64_t keys_of_sequence(const Problem& problem);

// Rows that have keys in common, where those of packed sequences that lie one after the other share
// a tile: those of a sequence in pages, or all of a batch.
std::int64_t rows_that_share_keys(const Problem& problem);

// One work-group for every `rows` query rows of each head and batch.
Dim3 row_groups(const Problem& problem, std::int64_t rows);
// The same, or one for each item that the work list may have.
Dim3 listed_groups(const Problem& problem, const AttentionTiling& tiling, std::int64_t rows);

// A small kernel, "attention/core/<name>" in both languages: the same program whatever the
// configuration of the variant, in groups of kHelperItems.
inline constexpr std::uint32_t kHelperItems = 64;
Pass helper_pass(const std::string& name);

// Kernels that come before those of a variant. They launch nothing where they are not needed.
Pass rows_pass(const AttentionSlots& slots);
Pass spans_pass(const AttentionSlots& slots, const Tiling& tiling);  // in place of rows_pass
// The same where keys lie in pages: where packed sequences begin, then the table.
std::vector<Pass> pages_passes(const AttentionSlots& slots, const Tiling& tiling);
Pass map_pass(const AttentionSlots& slots, const Tiling& tiling);
Pass work_pass(const AttentionSlots& slots, const Tiling& tiling);
// And after one: the weights, where the call wants them.
Pass weights_pass(const AttentionSlots& slots, const Tiling& tiling);

// Dims, offsets and strides of queries, keys, values, outputs and their gradients are multiples of
// `elements`.
bool is_aligned(const Problem& problem, std::int64_t elements);
// Values of HEAD_DIM, VALUE_DIM and ALIGNED, to four elements.
std::vector<Define> shape_constants(const Problem& problem, const Config& config);
// The same and CODE_TYPE, of kernels that take codes.
std::vector<Define> code_constants(const Problem& problem, const Config& config);
std::uint32_t code_type(const Problem& problem);  // DTYPE_…; 0 where keys and values are floats
// What those are multiples of: 8, 4 or 1.
std::uint32_t vector_elements(const Problem& problem);

// A forward kernel for calls with and without policies: rows, map, the kernel, combine, weights.
// `groups` counts the work-groups of one split.
struct ForwardKernel {
  std::string opencl{}, entry{}, vulkan{};
  Tiling tiling{};
  std::function<std::vector<Define>(const Problem&, const DeviceProfile&)> axes{};  // but POLICY
  std::function<Dim3(const Problem&, const Config&)> groups{};
  std::function<std::vector<Define>(const Problem&, const Config&)> constants = shape_constants;
  bool takes_policies = true;
  bool takes_list = false;  // of packed sequences
  // Likewise, of which calls, built with LISTED=1 for them.
  std::function<bool(const Problem&)> lists{};
  bool takes_codes = false;  // of keys and values, built with CODES=1
};
// The kernel of all policies: over floats or codes, one after the other or in pages.
Pass policies_pass(const AttentionSlots& slots, const ForwardKernel& kernel, bool codes);
std::vector<Pass> forward_passes(const AttentionSlots& slots, const ForwardKernel& kernel);
// A variant of that kernel; the caller adds what it needs, its space and what it rejects.
Variant forward_variant(const AttentionSlots& slots, std::string name, std::string idea,
                        std::vector<Tunable> tunables, const ForwardKernel& kernel);

// A factor of the scores that may be multiplied when the exponential is taken, where masked scores,
// -2^100, stay far beyond all others.
bool folds_into_exponent(double factor);

// The kernels count elements of operands and floats of the scratch buffer in 32 bits.
Refusal rejects_long_offsets(const Problem& problem, const DeviceProfile& profile,
                             std::uint64_t scratch_bytes);

// Of kernels that multiply rows and pages by their stride in bytes, 32 bits by 32 bits.
Refusal rejects_far_keys(const Problem& problem);

}  // namespace tessera::operations::attention
