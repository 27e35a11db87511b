// SPDX-License-Identifier: Apache-2.0
#include "operations/moe/ffn/calls.hpp"

#include "operations/common/launch.hpp"

namespace tessera::operations::moe {

FfnPlaces ffn_places(const Problem& problem, std::uint64_t start, bool is_stored) {
  const auto& call = problem.as<FfnProblem>();
  FfnPlaces places;
  places.bytes = start;
  const auto add = [&](DType dtype, Shape shape) {
    constexpr std::uint64_t kAlignment = 256;
    Place place{.slot = kScratch, .spec = TensorSpec::contiguous(dtype, std::move(shape))};
    place.spec.offset = static_cast<std::int64_t>(places.bytes / size_of(dtype));
    const auto bytes = static_cast<std::uint64_t>(place.spec.elements()) * size_of(dtype);
    places.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return place;
  };
  places.sizes = add(DType::kI32, {call.experts});
  places.rows = add(problem.dtype, {call.rows, call.hidden});
  if (is_stored) places.gate_up = add(problem.dtype, {call.rows, ffn_columns(call)});
  places.gated = add(problem.dtype, {call.rows, call.inner});
  places.outputs = add(problem.dtype, {call.rows, call.hidden});
  if (!call.slots.backward()) return places;
  places.grad_outputs = add(problem.dtype, {call.rows, call.hidden});
  places.grad_gated = add(problem.dtype, {call.rows, call.inner});
  return places;
}

abi::MoeFfnArgs ffn_arguments(const Problem& problem, const FfnPlaces& places) {
  const auto& call = problem.as<FfnProblem>();
  const auto offset = [](const Place& place) { return static_cast<abi::u32>(place.spec.offset); };
  return {.experts = static_cast<abi::u32>(call.experts),
          .starts = static_cast<abi::u32>(problem.spec(call.slots.offsets).offset),
          .sizes = offset(places.sizes),
          .rows = static_cast<abi::u32>(call.rows),
          .inner = static_cast<abi::u32>(call.inner),
          .type = dtype_axis(problem.dtype),
          .gate_up = offset(places.gate_up),
          .gated = offset(places.gated),
          .gradient = offset(places.grad_gated),
          .is_vector = call.inner % 4 == 0 ? 1U : 0U,
          .activation = call.activation,
          .is_gated = call.gated ? 1U : 0U};
}

Refusal rejects_ffn(const Problem& problem, const DeviceProfile& profile, const FfnPlaces& places) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  if (Refusal no = rejects_long_operands(problem, profile)) return no;
  if (places.bytes / size_of(problem.dtype) >= kMost)
    return "counts the elements of its scratch to 2^31";
  return std::nullopt;
}

Pass sizes_pass(const FfnSlots& slots, PlacesOf places_of) {
  static constexpr std::uint32_t kItems = 64;
  Pass pass;
  pass.name = "sizes";
  pass.opencl = {.file = "moe/ffn/sizes.cl", .entry = "moe_sizes"};
  pass.vulkan = {.file = "moe/ffn/sizes.comp", .entry = "main"};
  pass.bindings = {slots.offsets, kScratch};
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{kItems}; };
  pass.groups = [](const Problem& problem, const Config&) {
    return Dim3{ceil_div(problem.as<FfnProblem>().experts, kItems)};
  };
  pass.args = [places_of](const Problem& problem, const Config&) {
    return argument_bytes(ffn_arguments(problem, places_of(problem)));
  };
  return pass;
}

FfnCalls::FfnCalls(const Problem& problem, FfnPlaces places)
    : problem_(problem), call_(problem.as<FfnProblem>()), places_(std::move(places)) {}

std::vector<Step> FfnCalls::forward(std::vector<Step> gated) {
  const FfnSlots& at = call_.slots;
  Operands route{{"logits", operand(at.logits)}, {"expert_ids", operand(at.ids)},
                 {"slots", operand(at.slots)},   {"weights", operand(at.weights)},
                 {"counts", operand(at.counts)}, {"offsets", operand(at.offsets)}};
  add(route, "bias", at.bias);
  add(route, "balance_loss", at.balance);
  add(route, "z_loss", at.z);
  call("route", std::move(route), route_options(problem_));
  inside(std::move(gated));
  outputs();
  Operands combine = choices({{"rows", places_.outputs}, {"output", operand(at.output)}});
  combine.emplace_back("weights", operand(at.weights));
  call("combine", std::move(combine), {});
  return std::move(steps_);
}

std::vector<Step> FfnCalls::backward(std::vector<Step> gated) {
  const FfnSlots& at = call_.slots;
  inside(std::move(gated));
  if (problem_.has(at.grad_weights)) outputs();
  Operands combine = choices({{"rows", places_.outputs},
                              {"weights", operand(at.weights)},
                              {"grad_output", operand(at.output)},
                              {"grad_rows", places_.grad_outputs}});
  add(combine, "grad_weights", at.grad_weights);
  call("combine_backward", std::move(combine), {});
  Operands down = product(places_.gated, operand(at.down));
  down.emplace_back("grad_output", places_.grad_outputs);
  down.emplace_back("grad_lhs", places_.grad_gated);
  add(down, "grad_rhs", at.grad_down);
  call("grouped_matmul_backward", std::move(down), transposed());
  steps_.emplace_back(LaunchStep{.pass = "gate_backward"});
  if (!problem_.has(at.grad_input) && !problem_.has(at.grad_gate_up)) return std::move(steps_);
  Operands up = product(places_.rows, operand(at.gate_up));
  up.emplace_back("grad_output", places_.gate_up);
  // The outputs of experts are not needed any more.
  if (problem_.has(at.grad_input)) up.emplace_back("grad_lhs", places_.outputs);
  add(up, "grad_rhs", at.grad_gate_up);
  call("grouped_matmul_backward", std::move(up), transposed());
  if (problem_.has(at.grad_input))
    call("combine", choices({{"rows", places_.outputs}, {"output", operand(at.grad_input)}}), {});
  return std::move(steps_);
}

// Rows of experts, and what is inside of them: the gated values.
void FfnCalls::inside(std::vector<Step> gated) {
  const FfnSlots& at = call_.slots;
  steps_.emplace_back(LaunchStep{.pass = "sizes"});
  call("dispatch", choices({{"input", operand(at.input)}, {"output", places_.rows}}),
       {{"rows", call_.rows}});
  for (Step& step : gated) steps_.push_back(std::move(step));
}

CallStep FfnCalls::gate_up() const {
  Operands operands = product(places_.rows, operand(call_.slots.gate_up));
  operands.emplace_back("output", places_.gate_up);
  return {.operation = "grouped_matmul", .operands = std::move(operands), .options = transposed()};
}

CallStep FfnCalls::gate() const {
  Place gate = operand(call_.slots.gate_up);
  gate.spec.shape[call_.transposed ? 1 : 2] = call_.inner;
  Operands operands = product(places_.rows, gate);
  operands.emplace_back("output", places_.gated);
  return {.operation = "grouped_matmul", .operands = std::move(operands), .options = transposed()};
}

void FfnCalls::outputs() {
  Operands down = product(places_.gated, operand(call_.slots.down));
  down.emplace_back("output", places_.outputs);
  call("grouped_matmul", std::move(down), transposed());
}

void FfnCalls::add(Operands& to, const char* name, std::size_t slot) const {
  if (problem_.has(slot)) to.emplace_back(name, operand(slot));
}
FfnCalls::Operands FfnCalls::choices(Operands more) const {
  const FfnSlots& at = call_.slots;
  more.emplace_back("expert_ids", operand(at.ids));
  more.emplace_back("slots", operand(at.slots));
  more.emplace_back("offsets", operand(at.offsets));
  return more;
}
FfnCalls::Operands FfnCalls::product(const Place& lhs, const Place& rhs) const {
  return {{"lhs", lhs}, {"rhs", rhs}, {"group_sizes", places_.sizes}};
}

void FfnCalls::call(std::string operation, Operands operands, Options options) {
  steps_.emplace_back(CallStep{.operation = std::move(operation),
                               .operands = std::move(operands),
                               .options = std::move(options)});
}

}  // namespace tessera::operations::moe
