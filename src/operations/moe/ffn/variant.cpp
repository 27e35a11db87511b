// SPDX-License-Identifier: Apache-2.0
// moe_ffn and its gradients as calls of the operations that they are made of.
#include <algorithm>
#include <string>
#include <utility>

#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/moe/ffn.hpp"
#include "operations/moe/ffn/args.h"

namespace tessera::operations::moe {
namespace {

// What lies in scratch, one behind the other.
struct FfnPlaces {
  Place sizes, rows, gate_up, gated, outputs, grad_outputs, grad_gated;
  std::uint64_t bytes = 0;
};

FfnPlaces places_of(const Problem& problem) {
  const auto& call = problem.as<FfnProblem>();
  FfnPlaces places;
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
  places.gate_up = add(problem.dtype, {call.rows, ffn_columns(call)});
  places.gated = add(problem.dtype, {call.rows, call.inner});
  places.outputs = add(problem.dtype, {call.rows, call.hidden});
  if (!call.slots.backward()) return places;
  places.grad_outputs = add(problem.dtype, {call.rows, call.hidden});
  places.grad_gated = add(problem.dtype, {call.rows, call.inner});
  return places;
}

abi::MoeFfnArgs arguments(const Problem& problem) {
  const auto& call = problem.as<FfnProblem>();
  const FfnPlaces places = places_of(problem);
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

// The calls of a problem: operands by name, those of the caller by slot.
class Calls {
 public:
  explicit Calls(const Problem& problem)
      : problem_(problem), call_(problem.as<FfnProblem>()), places_(places_of(problem)) {}

  std::vector<Step> forward() {
    const FfnSlots& at = call_.slots;
    Operands route{{"logits", operand(at.logits)}, {"expert_ids", operand(at.ids)},
                   {"slots", operand(at.slots)},   {"weights", operand(at.weights)},
                   {"counts", operand(at.counts)}, {"offsets", operand(at.offsets)}};
    add(route, "bias", at.bias);
    add(route, "balance_loss", at.balance);
    add(route, "z_loss", at.z);
    call("route", std::move(route), route_options(problem_));
    inside();
    outputs();
    Operands combine = choices({{"rows", places_.outputs}, {"output", operand(at.output)}});
    combine.emplace_back("weights", operand(at.weights));
    call("combine", std::move(combine), {});
    return std::move(steps_);
  }

  std::vector<Step> backward() {
    const FfnSlots& at = call_.slots;
    inside();
    if (problem_.has(at.grad_weights)) outputs();
    Operands combine = choices({{"rows", places_.outputs},
                                {"weights", operand(at.weights)},
                                {"grad_output", operand(at.output)},
                                {"grad_rows", places_.grad_outputs}});
    add(combine, "grad_weights", at.grad_weights);
    call("combine_backward", std::move(combine), {});
    Operands down = product(places_.gated, at.down);
    down.emplace_back("grad_output", places_.grad_outputs);
    down.emplace_back("grad_lhs", places_.grad_gated);
    add(down, "grad_rhs", at.grad_down);
    call("grouped_matmul_backward", std::move(down), transposed());
    steps_.emplace_back(LaunchStep{.pass = "gate_backward"});
    if (!problem_.has(at.grad_input) && !problem_.has(at.grad_gate_up)) return std::move(steps_);
    Operands up = product(places_.rows, at.gate_up);
    up.emplace_back("grad_output", places_.gate_up);
    // The outputs of experts are not needed any more.
    if (problem_.has(at.grad_input)) up.emplace_back("grad_lhs", places_.outputs);
    add(up, "grad_rhs", at.grad_gate_up);
    call("grouped_matmul_backward", std::move(up), transposed());
    if (problem_.has(at.grad_input))
      call("combine", choices({{"rows", places_.outputs}, {"output", operand(at.grad_input)}}), {});
    return std::move(steps_);
  }

 private:
  using Operands = std::vector<std::pair<std::string, Place>>;

  // Rows of experts, and what is inside of them: the gated values.
  void inside() {
    const FfnSlots& at = call_.slots;
    steps_.emplace_back(LaunchStep{.pass = "sizes"});
    call("dispatch", choices({{"input", operand(at.input)}, {"output", places_.rows}}),
         {{"rows", call_.rows}});
    Operands gate_up = product(places_.rows, at.gate_up);
    gate_up.emplace_back("output", places_.gate_up);
    call("grouped_matmul", std::move(gate_up), transposed());
    steps_.emplace_back(LaunchStep{.pass = "gate"});
  }

  void outputs() {
    Operands down = product(places_.gated, call_.slots.down);
    down.emplace_back("output", places_.outputs);
    call("grouped_matmul", std::move(down), transposed());
  }

  Place operand(std::size_t slot) const { return {slot, problem_.spec(slot)}; }
  void add(Operands& to, const char* name, std::size_t slot) const {
    if (problem_.has(slot)) to.emplace_back(name, operand(slot));
  }
  Operands choices(Operands more) const {
    const FfnSlots& at = call_.slots;
    more.emplace_back("expert_ids", operand(at.ids));
    more.emplace_back("slots", operand(at.slots));
    more.emplace_back("offsets", operand(at.offsets));
    return more;
  }
  Operands product(const Place& lhs, std::size_t rhs) const {
    return {{"lhs", lhs}, {"rhs", operand(rhs)}, {"group_sizes", places_.sizes}};
  }
  Options transposed() const { return {{"transpose_rhs", call_.transposed}}; }
  void call(std::string operation, Operands operands, Options options) {
    steps_.emplace_back(CallStep{.operation = std::move(operation),
                                 .operands = std::move(operands),
                                 .options = std::move(options)});
  }

  const Problem& problem_;
  const FfnProblem& call_;
  const FfnPlaces places_;
  std::vector<Step> steps_{};
};

Pass sizes_pass(const FfnSlots& slots) {
  Pass pass;
  pass.name = "sizes";
  pass.opencl = {.file = "moe/ffn/sizes.cl", .entry = "moe_sizes"};
  pass.vulkan = {.file = "moe/ffn/sizes.comp", .entry = "main"};
  pass.bindings = {slots.offsets, kScratch};
  pass.specialized_on = std::vector<std::string>{};
  pass.groups = [](const Problem& problem, const Config& config) {
    return Dim3{ceil_div(problem.as<FfnProblem>().experts, config.group().x)};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments(problem));
  };
  return pass;
}

Pass gate_pass(const std::string& name, bool backward) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "moe/ffn/gate.cl", .entry = "moe_gate"};
  pass.vulkan = {.file = "moe/ffn/gate.comp", .entry = "main"};
  pass.bindings = {kScratch, kScratch};
  pass.axes = storage_axes;
  pass.constants = [backward](const Problem&, const Config&) {
    return std::vector<Define>{{"BACKWARD", backward ? 1U : 0U}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    constexpr std::int64_t kMostGroups = 16384;
    const auto& call = problem.as<FfnProblem>();
    const std::int64_t eights = call.rows * ((call.inner + 7) / 8), items = config.group().x;
    return Dim3{static_cast<std::uint32_t>(std::min((eights + items - 1) / items, kMostGroups))};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments(problem));
  };
  return pass;
}

Refusal rejects(const Problem& problem, const Config&, const DeviceProfile& profile) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  if (Refusal no = rejects_long_operands(problem, profile)) return no;
  if (places_of(problem).bytes / size_of(problem.dtype) >= kMost)
    return "counts the elements of its scratch to 2^31";
  return std::nullopt;
}

}  // namespace

Way ffn_way(const FfnSlots& slots) {
  Variant variant;
  variant.name = "calls";
  variant.idea = "route, dispatch, grouped products and combine, one after the other";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/moe/ffn/ffn.def"
  };
  variant.passes = {sizes_pass(slots), gate_pass("gate", false)};
  if (slots.backward()) variant.passes.push_back(gate_pass("gate_backward", true));
  variant.steps = [](const Problem& problem, const Config&) {
    Calls calls(problem);
    return problem.as<FfnProblem>().slots.backward() ? calls.backward() : calls.forward();
  };
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return places_of(problem).bytes;
  };
  const auto space = [](const Problem&, const DeviceProfile&) {
    return std::vector<Config>{{{"WG_X", 64}}};
  };
  variant.space = space;
  variant.rejects = rejects;
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::moe
