// SPDX-License-Identifier: Apache-2.0
// Scratch of a call, and what is done in which order: the same for every way, whose kernels differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operations/cells_core/args.h"
#include "operations/cells_core/problem.hpp"

namespace tessera::operations::cells {

// Products of a step: a state times packed weights, in panels of each direction. Two states take
// turns.
struct PackedProduct {
  std::int64_t units = 0, depth = 0;  // columns, and terms of each
  std::int64_t vectors = 1, panels = 0;
  std::int64_t terms = 0;  // depth by fours
  std::uint64_t weights = 0, state = 0;
  std::uint64_t state_size = 0;  // of one of both
};

// Places count floats.
struct CellLayout {
  PackedProduct forward{}, project{};
  std::uint64_t product = 0, bias = 0, lengths = 0, cell = 0;
  // Backward. `kept`: of each step, where the call has no reserve; `of_h`: gradient of h.
  PackedProduct backward{}, project_backward{};
  std::uint64_t carry = 0, kept = 0, turned = 0, clean = 0, of_h = 0;
  std::uint64_t end = 0;
};
CellLayout layout_of(const Problem& problem);

// Where steps keep what the way back needs: floats of the operand `reserve`, or of scratch.
struct KeptPlace {
  std::size_t slot = kScratch;
  std::uint64_t first = 0;
};
KeptPlace kept_place(const Problem& problem);

// Products that the library's own operations do: of all tokens before the first step, and what
// becomes gradients of operands behind the last.
CallStep input_product(const Problem& problem);
// With `rounded_h` gradients of weight_hh take h before each step from there in scratch, in
// elements of the storage type, [batch, tokens, directions, hidden]; else what was kept.
std::vector<CallStep> gradient_products(const Problem& problem,
                                        std::optional<std::uint64_t> rounded_h = std::nullopt);
bool copies_input(const Problem& problem);  // for the latter, with 0 behind lengths
// The same elements with the first two axes as one; nothing where no stride says so.
std::optional<TensorSpec> folded(const TensorSpec& spec);

inline constexpr const char* kBeginKernel = "cells/core/begin.cl";  // of every way
// Passes "begin", "forward" and, of gradients, "begin_backward", "backward" and its like that takes
// the reserve; with projections "pack", "project", "pack_backward" and "project_backward", too.
// `file` is that of the step kernels without "forward.cl", and `entry` their name without
// "_forward".
std::vector<Pass> cell_passes(const CellSlots& slots, const std::string& file,
                              const std::string& entry, bool vulkan);
// The product of all tokens, then launches for each of them, and the same on the way back, which is
// all of a call with a reserve. A work-group takes ROWS batch entries and one panel.
std::vector<Step> cell_steps(const Problem& problem, const Config& config);
// The same with these in place of those launches, forward and back.
std::vector<Step> cell_steps_with(const Problem& problem, std::vector<Step> forward,
                                  std::vector<Step> backward,
                                  std::optional<std::uint64_t> rounded_h = std::nullopt);

std::uint32_t kind_of(const Problem& problem);  // CELL_…
// Why no kernel can run the call.
Refusal rejects_cells(const Problem& problem, const Config& config, const DeviceProfile& profile);

}  // namespace tessera::operations::cells
