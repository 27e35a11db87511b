// SPDX-License-Identifier: Apache-2.0
// One token on GPUs through OpenCL: what it takes is reading and writing states.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/vendor_ids.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/launch.hpp"

namespace tessera::operations::recurrence {
namespace {

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const RecurrenceProblem& call = call_of(problem);
  if (call.tokens != 1 || call.packed)
    return "takes one token of each batch entry; variant tile takes more, and packed sequences";
  if (problem.has(call.slots.gv)) return "takes no decays of value dims";
  if (!is_aligned(problem))
    return "reads 4 elements at once, of which some dim, offset or stride is no multiple";
  const std::int64_t held = std::int64_t{config.group().y} * config.at("ROWS");
  if (call.key_dim != held)
    return "holds " + std::to_string(held) + " key dims, and the call has " +
           std::to_string(call.key_dim);
  return rejects_recurrence(problem, profile);
}

// Lanes of four columns, and key dims of an item.
struct Cut {
  std::uint32_t lanes, rows;
};

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  // H200, 8192 states of 128 x 128: 264 us (4.07 TB/s) and 267 by the first two, up to 384 by
  // others.
  constexpr std::array<Cut, 9> kCuts{
      {{16, 16}, {16, 8}, {8, 8}, {32, 8}, {8, 16}, {16, 4}, {32, 4}, {8, 4}, {4, 4}}};
  constexpr std::array<Cut, 1> kOfProcessors{{{8, 8}}};
  const RecurrenceProblem& call = call_of(problem);
  const auto cuts = is_cpu(profile) ? std::span<const Cut>(kOfProcessors) : kCuts;
  std::vector<Config> list;
  for (const Cut& cut : cuts) {
    const auto parts = static_cast<std::uint32_t>(call.key_dim / cut.rows);
    const std::uint32_t items = cut.lanes * parts;
    if (profile.vendor_id == kVendorIntel && cut.rows > 4) continue;  // more are spilled
    // A warp at least, and what every device takes.
    if (items < 32 ||
        items > (profile.max_group_size == 0 ? 256U : std::min(profile.max_group_size, 256U)))
      continue;
    if (cut.lanes > 4 && 4 * cut.lanes >= 2 * call.value_dim) continue;  // half of them idle
    Config config{{"WG_X", cut.lanes}, {"WG_Y", parts}, {"ROWS", cut.rows}};
    if (!rejects(problem, config, profile)) list.push_back(std::move(config));
  }
  return list;
}

Pass decode_pass(const RecurrenceSlots& slots) {
  Pass pass;
  pass.name = "decode";
  pass.opencl = {.file = "recurrence/decode/decode.cl", .entry = "recurrence_decode"};
  pass.bindings = {slots.query, slots.key,           slots.value,  slots.g,          slots.gamma,
                   slots.gk,    slots.initial_state, slots.output, slots.final_state};
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(units_of(call_of(problem), std::int64_t{4} * config.group().x));
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments_of(problem));
  };
  return pass;
}

}  // namespace

std::optional<Way> decode_way(const RecurrenceSlots& slots) {
  if (slots.backward() || slots.delta()) return std::nullopt;
  Variant variant;
  variant.name = "decode";
  variant.idea = "one token: all loads of a state ahead of its products";
  variant.needs = {.backends = {Backend::kOpenCL}};
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/recurrence_core/decode/decode.def"
  };
  variant.space = space;
  variant.local_bytes = [](const Problem&, const Config& config) {
    const Dim3 group = config.group();
    return std::uint64_t{16} * group.y * (config.at("ROWS") + group.x);
  };
  variant.rejects = rejects;
  variant.passes = list_of(decode_pass(slots));
  return Way{.variant = std::move(variant),
             .rule = {.why = "one token reads and writes states, as whole rows",
                      .when = [](const Problem& problem, const DeviceProfile& profile) {
                        return !is_cpu(profile) && !space(problem, profile).empty();
                      }}};
}

}  // namespace tessera::operations::recurrence
