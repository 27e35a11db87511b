// SPDX-License-Identifier: Apache-2.0
// What the norms' kernels are launched with. Variants differ in how they deal rows out, which
// Dealing says; the rest has one place here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "operations/norms/args.h"
#include "operations/norms/problem.hpp"

namespace tessera::operations::norms {

// The leading axes of a call as kernels see them: neighbours that lie alike in every operand are
// one.
struct RowAxes {
  std::array<std::int64_t, 3> sizes{1, 1, 1};
  std::array<bool, 3> summed{};                        // the residual broadcasts along it
  std::vector<std::array<std::int64_t, 3>> strides{};  // by slot
};
std::optional<RowAxes> row_axes(const Problem& problem);  // nothing: more than three axes

// How the rows of a backward call are shared.
struct Dealing {
  std::int64_t groups = 0;
  std::int64_t lines = 1;  // of a work-group, each with sums of its own
  std::int64_t shares() const { return groups * lines; }
};
// `wanted` work-groups, or as many fewer as leave none without a block of `lines` rows.
Dealing deal(std::int64_t rows, std::int64_t lines, std::int64_t wanted);

// Scratch of a backward call, in floats: sums for weight, then for bias, then the gradient of the
// input where it has to be added up for a residual.
struct NormScratch {
  std::uint64_t columns = 0, kept = 0, floats = 0;
};
NormScratch scratch_of(const Problem& problem, const Dealing& dealing);

abi::u32 features_of(const Problem& problem);  // what the call has, NORM_…
// Every 16 bytes of a row, and what an output of 8 bits has for them.
bool is_aligned(const Problem& problem);

abi::NormForwardArgs forward_arguments(const Problem& problem);
abi::NormBackwardArgs backward_arguments(const Problem& problem, const Dealing& dealing);
// Of the pass that makes the gradient in `slot` from scratch.
abi::NormCombineArgs combine_arguments(const Problem& problem, const Dealing& dealing,
                                       std::size_t slot);
bool combines(const Problem& problem, std::size_t slot);  // is there such a pass?

// What every variant refuses.
Refusal rejects_norm(const Problem& problem, const DeviceProfile& profile);
Refusal rejects_scratch(const Problem& problem, const Dealing& dealing);

}  // namespace tessera::operations::norms
