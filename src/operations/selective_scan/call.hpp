// SPDX-License-Identifier: Apache-2.0
// A call of selective_scan or of its gradients after validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "operations/common/ways.hpp"
#include "operations/state_space_core/bounded.hpp"
#include "operations/state_space_core/layout.hpp"

namespace tessera::operations::state_space {

// Forward and backward have the first ten in common.
enum ScanSlot : std::size_t {
  kScanU,
  kScanDelta,
  kScanA,
  kScanB,
  kScanC,
  kScanD,
  kScanZ,
  kScanBias,
  kScanInitial,
  kScanOffsets,
  kScanOutput,
  kScanFinal,
  kScanGradOutput = kScanOutput,
  kScanGradFinal = kScanFinal,
  kScanGradU,
  kScanGradDelta,
  kScanGradA,
  kScanGradB,
  kScanGradC,
  kScanGradD,
  kScanGradZ,
  kScanGradBias,
  kScanGradInitial
};

// Gradients, and what they are the gradients of.
inline constexpr std::pair<std::size_t, std::size_t> kScanGradients[] = {
    {kScanGradU, kScanU}, {kScanGradDelta, kScanDelta}, {kScanGradA, kScanA},
    {kScanGradB, kScanB}, {kScanGradC, kScanC},         {kScanGradD, kScanD},
    {kScanGradZ, kScanZ}, {kScanGradBias, kScanBias},   {kScanGradInitial, kScanInitial}};

struct ScanCall {
  Layout layout{};
  std::int64_t groups = 1, states = 0;
  bool softplus = false, backward = false;
};

void validate_scan(Problem& problem, bool backward);
void reference_scan(const Problem& problem, std::span<HostTensor> tensors);
std::vector<Raised> raises_scan(const Problem& problem, std::span<HostTensor> tensors);
Workload scan_workload(bool backward);
Way scan_cpu_way(bool backward);
Way scan_tile_way(bool backward);

// What must come out of every `stride`-th channel; gradients need all of them.
Outputs scan_outputs(const Problem& problem, std::span<HostTensor> tensors, std::int64_t stride);

}  // namespace tessera::operations::state_space
