// SPDX-License-Identifier: Apache-2.0
// A plan is a call that has been checked, chosen and built: everything that does not depend on the
// data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "runtime/program_cache.hpp"
#include "tessera/context.hpp"

namespace tessera::runtime {

struct Step {
  device::ProgramPtr program;
  Dim3 groups, group;
  std::vector<std::size_t> bindings;  // operand slots, kScratch or kNoOperand
  std::vector<std::byte> arguments;
};

struct Plan {
  Problem problem;
  std::vector<Step> steps;
  std::uint64_t scratch_bytes = 0;
  std::shared_ptr<const Execution> execution;
};

// Builds what `choice` needs. Asks selection::refusal() first: nothing is launched that was not
// judged.
std::shared_ptr<const Plan> make_plan(Problem problem, const Choice& choice,
                                      const DeviceProfile& profile, ProgramCache& programs);

// The programs that the plan would need. Builds nothing.
std::vector<ProgramName> program_names(const Problem& problem, const Variant& variant,
                                       const Config& config, const DeviceProfile& profile);

// `buffers` by operand slot; null for absent operands. `scratch` holds at least scratch_bytes.
void launch(const Plan& plan, device::Stream& stream, std::span<const device::BufferPtr> buffers,
            const device::BufferPtr& scratch);

}  // namespace tessera::runtime
