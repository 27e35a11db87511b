// SPDX-License-Identifier: Apache-2.0
// Scratch of a call, and what is done in which order: the same for every way, whose kernels differ.
#pragma once

#include <cstdint>
#include <vector>

#include "operations/cells_core/args.h"
#include "operations/cells_core/problem.hpp"

namespace tessera::operations::cells {

// Packed weights of one pass, the states that they multiply, and panels of each direction.
struct PackedPlaces {
  std::int64_t vectors = 1, panels = 0, terms = 0;
  std::uint64_t weights = 0, state = 0;
  std::uint64_t state_size = 0;  // of one of both
};

// Places count floats.
struct CellLayout {
  PackedPlaces forward{}, backward{};
  std::uint64_t product = 0, bias = 0, lengths = 0, cell = 0;
  std::uint64_t carry = 0, kept = 0, before = 0, turned = 0, clean = 0;  // backward
  std::uint64_t end = 0;
};
CellLayout layout_of(const Problem& problem);

// Passes "begin", "forward" and, of gradients, "begin_backward" and "backward": `file` is that of
// the step kernels without "forward.cl", and `entry` their name without "_forward".
std::vector<Pass> cell_passes(const CellSlots& slots, const std::string& file,
                              const std::string& entry, bool vulkan);
// The product of all tokens, then a launch for each of them, and the same on the way back. A
// work-group takes ROWS batch entries and one panel.
std::vector<Step> cell_steps(const Problem& problem, const Config& config);

std::uint32_t kind_of(const Problem& problem);  // CELL_…
// Why no kernel can run the call.
Refusal rejects_cells(const Problem& problem, const Config& config, const DeviceProfile& profile);

}  // namespace tessera::operations::cells
