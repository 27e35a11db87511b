// SPDX-License-Identifier: Apache-2.0
// With which configuration of a space to begin on a GPU where nothing was measured: a model of one
// core, with five numbers that were fitted to an H200 (ranking.cpp). It compares configurations of
// one variant on one GPU, and its cycles mean nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernel/gpu.hpp"
#include "tessera/record.hpp"

namespace tessera::kernel {

// What one launch takes and does, as its variant counts it.
struct Effort {
  double groups = 1;  // work-groups
  double rounds = 1;  // of each group's loop
  std::uint32_t items = 1;
  std::uint32_t registers = 0;  // of an item
  std::uint64_t local_bytes = 0;
  // Of an item in a round.
  double products = 0;  // multiply-adds
  double loads = 0;     // of 16 bytes from local memory
  double copies = 0;    // of 16 bytes from global to local memory
  double others = 0;    // operations on scores and outputs
  double steps = 0;     // from one pair of barriers to the next
};
double predicted_cycles(const Effort& effort, const DeviceProfile& profile);
// By estimate, it takes more than group_budget().
bool strains(const Effort& effort, const DeviceProfile& profile);

// Sorts configurations by what `cycles` says of them; those that `strains` names, because they
// spill or leave a core too few waves, come last. Equal ones keep their order.
void rank(std::vector<Config>& configs, const std::function<bool(const Config&)>& strains,
          const std::function<double(const Config&)>& cycles);

// Whether configurations for such GPUs were measured on one of them.
bool is_measured(const DeviceProfile& profile);

}  // namespace tessera::kernel
