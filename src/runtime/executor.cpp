// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/context_state.hpp"
#include "tessera/context.hpp"

namespace tessera {
namespace {

// By slot. Points into the tensors of the call: most calls find their plan and need no copies.
struct Bound {
  std::vector<const TensorSpec*> specs;  // null = absent
  std::vector<device::BufferPtr> buffers;
  std::vector<bool> requested;
};

// First and last byte of a tensor in its buffer.
std::pair<std::int64_t, std::int64_t> byte_range(const TensorSpec& spec) {
  const auto size = static_cast<std::int64_t>(size_of(spec.dtype));
  return {spec.offset * size, (spec.last_element() + 1) * size};
}

void check_buffer(const Operation& operation, const std::string& name, const Tensor& tensor,
                  const void* owner) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument(operation.name + ": " + name + " " + tensor.spec().to_string() + why);
  };
  if (tensor.buffer()->owner() != owner) refuse(" belongs to another context");
  const auto [begin, end] = byte_range(tensor.spec());
  const std::uint64_t size = tensor.buffer()->size();
  if (end > 0 && static_cast<std::uint64_t>(end) > size) {
    refuse(" reaches byte " + std::to_string(end) + " of a buffer of " + std::to_string(size));
  }
}

Bound bind_operands(const Operation& operation, const Tensors& tensors,
                    const std::vector<std::string>& wanted, const void* owner) {
  Bound bound;
  bound.specs.resize(operation.operands.size());
  bound.buffers.resize(operation.operands.size());
  bound.requested.resize(operation.operands.size(), false);
  for (const auto& [name, tensor] : tensors) {
    const std::size_t slot = operation.slot(name);
    if (!tensor) {
      if (operation.operands[slot].optional) continue;
      throw InvalidArgument(operation.name + ": " + name + " is an empty tensor");
    }
    check_buffer(operation, name, tensor, owner);
    bound.specs[slot] = &tensor.spec();
    bound.buffers[slot] = tensor.buffer();
  }
  for (const std::string& name : wanted) {
    const std::size_t slot = operation.slot(name);
    if (operation.operands[slot].role != Role::kOutput) {
      throw InvalidArgument(operation.name + ": '" + name + "' is an input and can't be asked for");
    }
    bound.requested[slot] = true;
  }
  return bound;
}

// An output may share a buffer with other operands but no bytes with them.
void check_overlap(const Operation& operation, const Bound& bound) {
  for (std::size_t out = 0; out < bound.specs.size(); ++out) {
    if (!bound.specs[out] || operation.operands[out].role != Role::kOutput) continue;
    const auto [begin, end] = byte_range(*bound.specs[out]);
    for (std::size_t other = 0; other < bound.specs.size(); ++other) {
      if (other == out || !bound.specs[other] || bound.buffers[other] != bound.buffers[out])
        continue;
      const auto [other_begin, other_end] = byte_range(*bound.specs[other]);
      if (begin < other_end && other_begin < end) {
        throw InvalidArgument(operation.name + ": output '" + operation.operands[out].name +
                              "' overlaps '" + operation.operands[other].name + "'");
      }
    }
  }
}

}  // namespace

Executor::Executor(const Context& context)
    : context_(context), stream_(context.state()->default_stream()) {}

Executor Executor::on(const Stream& stream) const {
  Executor copy = *this;
  copy.stream_ = stream.state_;
  return copy;
}
Executor Executor::with_variant(std::string variant) const {
  Executor copy = *this;
  copy.variant_ = std::move(variant);
  return copy;
}
Executor Executor::with_config(Config config) const {
  Executor copy = *this;
  copy.config_ = std::move(config);
  return copy;
}
Executor Executor::with_policy(Policy policy) const {
  Executor copy = *this;
  copy.policy_ = policy;
  return copy;
}
Executor Executor::with_precision(Precision precision) const {
  Executor copy = *this;
  copy.precision_ = precision;
  return copy;
}
Executor Executor::with_tiers(std::vector<Tier> tiers) const {
  Executor copy = *this;
  copy.tiers_ = std::move(tiers);
  return copy;
}

runtime::CallOptions Executor::call_options() const {
  return {.override_choice = {.variant = variant_, .config = config_},
          .policy = policy_,
          .tiers = tiers_,
          .precision = precision_};
}

Tensors Executor::run(std::string_view operation_name, const Tensors& inputs, Options options,
                      const std::vector<std::string>& wanted) const {
  runtime::ContextState& context = *context_.state();
  const Operation& operation = find_operation(operation_name);
  Bound bound = bind_operands(operation, inputs, wanted, &context);
  check_overlap(operation, bound);
  const auto plan =
      context.plan(operation, bound.specs, std::move(options), bound.requested, call_options());

  Tensors outputs;
  const Problem& problem = plan->problem;
  for (std::size_t slot = 0; slot < operation.operands.size(); ++slot) {
    if (operation.operands[slot].role != Role::kOutput || !problem.has(slot)) continue;
    if (!bound.buffers[slot])
      bound.buffers[slot] = context.create_tensor(problem.spec(slot)).buffer();
    outputs.emplace(operation.operands[slot].name, Tensor(problem.spec(slot), bound.buffers[slot]));
  }
  stream_->launch(*plan, bound.buffers);
  context.set_last_execution(plan->execution);
  return outputs;
}

Explanation Executor::explain(std::string_view operation_name, const Tensors& inputs,
                              Options options, const std::vector<std::string>& wanted) const {
  const Operation& operation = find_operation(operation_name);
  Bound bound = bind_operands(operation, inputs, wanted, context_.state().get());
  return explain(make_problem(operation, runtime::copies_of(bound.specs), std::move(options),
                              std::move(bound.requested)));
}

Explanation Executor::explain(const Problem& problem) const {
  runtime::ContextState& context = *context_.state();
  Options options = context.with_precision(problem.options, call_options());
  if (options == problem.options) return context.explain(problem, call_options());
  return context.explain(
      make_problem(*problem.operation, problem.operands, std::move(options), problem.requested),
      call_options());
}

std::shared_ptr<const runtime::Plan> Executor::plan(const Problem& problem) const {
  std::vector<const TensorSpec*> specs;
  for (const auto& spec : problem.operands) specs.push_back(spec ? &*spec : nullptr);
  return context_.state()->plan(*problem.operation, specs, problem.options, problem.requested,
                                call_options());
}

TuneReport Executor::tune(const Case& shape, std::string_view operation,
                          const EventSink& progress) const {
  runtime::ContextState& context = *context_.state();
  Case precise = shape;
  precise.options = context.with_precision(shape.options, call_options());
  const Problem problem =
      make_problem(find_operation(operation), precise.operands, precise.options);
  return context.tune(problem, precise, policy_.value_or(current_policy()), progress);
}

}  // namespace tessera
