// SPDX-License-Identifier: Apache-2.0
// A plan is a call that has been checked, chosen and built: everything that does not depend on the
// data. Calls that its variant makes are part of it, so that a plan is one list of launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "runtime/program_cache.hpp"
#include "tessera/context.hpp"

namespace tessera::runtime {

// What a kernel finds at one of its bindings.
struct Binding {
  enum class Kind : std::uint8_t { kNothing, kOperand, kScratch, kErrors };
  Kind kind = Kind::kNothing;
  std::size_t number = 0;  // slot of the operand, or depth of the call whose scratch it is
};

struct PlannedLaunch {
  device::ProgramPtr program;
  Dim3 groups, group;
  std::vector<Binding> bindings;
  std::vector<std::byte> arguments;
  std::optional<std::size_t> errors_at;  // Pass::errors_at
  std::uint32_t first_error = 0;         // where its operation's words begin among the plan's
  std::shared_ptr<const Problem> problem;
  bool is_first = false;  // of the call that it belongs to
};

// The words of one operation's errors; of a plan or of a whole log.
struct ErrorRange {
  const Operation* operation = nullptr;
  std::uint32_t first = 0;
};

struct Plan {
  Problem problem;
  std::vector<PlannedLaunch> launches;
  std::vector<std::uint64_t> scratch_bytes;  // of the call, of the calls that it makes, and so on
  std::vector<ErrorRange> errors;            // in the order of launches
  std::uint32_t error_words = 0;
  bool in_parts = false;        // launches may be made in parts
  bool rounds_factors = false;  // Variant::rounds_factors, of calls that the variant makes, too
  std::shared_ptr<const Execution> execution;
};

// Chooses for a call that a variant makes, of the variant if one is named.
using ChooseCall = std::function<Choice(const Problem& problem, const std::string& variant)>;
// What the rules would take.
Choice choose_by_rules(const Problem& problem, const std::string& variant,
                       const DeviceProfile& profile);

// Builds what `choice` needs. Asks selection::refusal() first: nothing is launched that was not
// judged. Without `choose`, calls that the variant makes run by the rules. `in_parts`: its launches
// may be made in parts.
std::shared_ptr<const Plan> make_plan(Problem problem, const Choice& choice,
                                      const DeviceProfile& profile, ProgramCache& programs,
                                      const ChooseCall& choose = {}, bool in_parts = false);

// The programs that the plan would need. Builds nothing.
std::vector<ProgramName> program_names(const Problem& problem, const Variant& variant,
                                       const Config& config, const DeviceProfile& profile);

// Where a plan works.
struct Memory {
  std::span<const device::BufferPtr> operands;  // by slot; null for absent ones
  std::span<const device::BufferPtr> scratch;   // as Plan::scratch_bytes
  device::BufferPtr errors{};                   // Plan::error_words of it belong to this launch
  std::uint32_t first_error = 0;
};
// Makes a launch, of which the plan has these arguments; null: the stream does.
using MakeLaunch = std::function<void(device::Stream& stream, const device::Launch& launch,
                                      std::span<const std::byte> arguments)>;
void launch(const Plan& plan, device::Stream& stream, const Memory& memory,
            const MakeLaunch& make = {});

}  // namespace tessera::runtime
