// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/system/out_of_memory.hpp"
#include "base/tensors/byte_range.hpp"
#include "runtime/context_state.hpp"
#include "tessera/context.hpp"

namespace tessera {

using runtime::state_of;

namespace {

// By slot. Points into the tensors of the call: most calls find their plan and need no copies.
struct Bound {
  std::vector<const TensorSpec*> specs;  // null = absent
  std::vector<device::BufferPtr> buffers;
  std::vector<ByteRange> ranges;  // of the buffers
  std::vector<bool> requested;
};

// Buffers of the application may be made for reading or for writing only.
void check_access(const Operation& operation, const Operand& operand,
                  const device::Buffer& buffer) {
  const char* lacks = is_written(operand.role) && !buffer.writable() ? "written"
                      : is_read(operand.role) && !buffer.readable()  ? "read"
                                                                     : nullptr;
  if (lacks == nullptr) return;
  throw InvalidArgument(operation.name + ": the buffer of " + operand.name +
                        " was made by the application as one that kernels may not have " + lacks);
}

Bound bind_operands(const Operation& operation, const Tensors& tensors,
                    const std::vector<std::string>& wanted, std::uint64_t owner) {
  Bound bound;
  bound.specs.resize(operation.operands.size());
  bound.buffers.resize(operation.operands.size());
  bound.ranges.resize(operation.operands.size());
  bound.requested.resize(operation.operands.size(), false);
  for (const auto& [name, tensor] : tensors) {
    const std::size_t slot = operation.slot(name);
    if (!tensor) {
      if (operation.operands[slot].optional) continue;
      throw InvalidArgument(operation.name + ": " + name + " is an empty tensor");
    }
    if (tensor.buffer()->owner() != owner) {
      throw InvalidArgument(operation.name + ": " + name + " " + tensor.spec().to_string() +
                            " belongs to another context");
    }
    check_access(operation, operation.operands[slot], *tensor.buffer());
    bound.ranges[slot] =
        byte_range(tensor.spec(), {.call = operation.name, .name = name}, tensor.buffer()->size());
    bound.specs[slot] = &tensor.spec();
    bound.buffers[slot] = tensor.buffer();
  }
  for (const std::string& name : wanted) {
    const std::size_t slot = operation.slot(name);
    if (!is_written(operation.operands[slot].role)) {
      throw InvalidArgument(operation.name + ": '" + name + "' is an input and can't be asked for");
    }
    bound.requested[slot] = true;
  }
  return bound;
}

ByteRange within_storage(const Bound& bound, std::size_t slot) {
  const std::uint64_t origin = bound.buffers[slot]->origin();
  return {bound.ranges[slot].begin + origin, bound.ranges[slot].end + origin};
}

// What is written may share a buffer with other operands but no bytes with them.
void check_overlap(const Operation& operation, const Bound& bound) {
  for (std::size_t out = 0; out < bound.specs.size(); ++out) {
    if (!bound.specs[out] || !is_written(operation.operands[out].role)) continue;
    const ByteRange ours = within_storage(bound, out);
    for (std::size_t other = 0; other < bound.specs.size(); ++other) {
      if (other == out || !bound.specs[other] ||
          bound.buffers[other]->storage() != bound.buffers[out]->storage())
        continue;
      const ByteRange theirs = within_storage(bound, other);
      if (ours.begin < theirs.end && theirs.begin < ours.end) {
        const std::string role(to_string(operation.operands[out].role));
        throw InvalidArgument(operation.name + ": " + role + " '" + operation.operands[out].name +
                              "' overlaps '" + operation.operands[other].name + "'");
      }
    }
  }
}

}  // namespace

Executor::Executor(const Context& context) try
    : context_(context), stream_(state_of(context).default_stream()) {
} catch (...) {
  rethrow_as_error();
}

Executor Executor::on(const Stream& stream) const try {
  if (!stream.state())
    throw InvalidArgument("the stream is empty: Context::create_stream() makes one");
  if (stream.state()->context() != state_of(context_).number())
    throw InvalidArgument("the stream belongs to another context than the executor");
  Executor copy = *this;
  copy.stream_ = stream.state();
  return copy;
} catch (...) {
  rethrow_as_error();
}
Executor Executor::with_variant(std::string variant) const try {
  Executor copy = *this;
  copy.variant_ = std::move(variant);
  return copy;
} catch (...) {
  rethrow_as_error();
}
Executor Executor::with_config(Config config) const try {
  Executor copy = *this;
  copy.config_ = std::move(config);
  return copy;
} catch (...) {
  rethrow_as_error();
}
Executor Executor::with_policy(Policy policy) const try {
  Executor copy = *this;
  copy.policy_ = policy;
  return copy;
} catch (...) {
  rethrow_as_error();
}
Executor Executor::with_precision(Precision precision) const try {
  Executor copy = *this;
  copy.precision_ = precision;
  return copy;
} catch (...) {
  rethrow_as_error();
}
Executor Executor::with_errors(const ErrorLog& log) const try {
  if (runtime::words_of(log.state_).buffer()->owner() != state_of(context_).number())
    throw InvalidArgument("the error log belongs to another context than the executor");
  Executor copy = *this;
  copy.errors_ = log.state_;
  return copy;
} catch (...) {
  rethrow_as_error();
}
Executor Executor::with_tiers(std::vector<Tier> tiers) const try {
  Executor copy = *this;
  copy.tiers_ = std::move(tiers);
  return copy;
} catch (...) {
  rethrow_as_error();
}

runtime::CallOptions Executor::call_options() const {
  return {.override_choice = {.variant = variant_, .config = config_},
          .policy = policy_,
          .tiers = tiers_,
          .precision = precision_,
          .may_submit = !stream_->only_records()};
}

Tensors Executor::run(std::string_view operation_name, const Tensors& inputs, Options options,
                      const std::vector<std::string>& wanted) const try {
  runtime::ContextState& context = state_of(context_);
  const Operation& operation = find_operation(operation_name);
  Bound bound = bind_operands(operation, inputs, wanted, context.number());
  check_overlap(operation, bound);
  const auto plan =
      context.plan(operation, bound.specs, std::move(options), bound.requested, call_options());

  Tensors outputs;
  const Problem& problem = plan->problem;
  for (std::size_t slot = 0; slot < operation.operands.size(); ++slot) {
    if (!is_written(operation.operands[slot].role) || !problem.has(slot)) continue;
    if (!bound.buffers[slot])
      bound.buffers[slot] = context.create_output(problem.spec(slot), *stream_).buffer();
    outputs.emplace(operation.operands[slot].name, Tensor(problem.spec(slot), bound.buffers[slot]));
  }
  stream_->launch(*plan, bound.buffers, errors_.get());
  context.set_last_execution(plan->execution);
  return outputs;
} catch (...) {
  rethrow_as_error();
}

Explanation Executor::explain(std::string_view operation_name, const Tensors& inputs,
                              Options options, const std::vector<std::string>& wanted) const try {
  const Operation& operation = find_operation(operation_name);
  Bound bound = bind_operands(operation, inputs, wanted, state_of(context_).number());
  return explain(make_problem(operation, runtime::copies_of(bound.specs), std::move(options),
                              std::move(bound.requested)));
} catch (...) {
  rethrow_as_error();
}

Explanation Executor::explain(const Problem& problem) const try {
  runtime::ContextState& context = state_of(context_);
  Options options = context.with_precision(problem.options, call_options());
  if (options == problem.options) return context.explain(problem, call_options());
  return context.explain(
      make_problem(*problem.operation, problem.operands, std::move(options), problem.requested),
      call_options());
} catch (...) {
  rethrow_as_error();
}

std::shared_ptr<const runtime::Plan> Executor::plan(const Problem& problem) const try {
  std::vector<const TensorSpec*> specs;
  for (const auto& spec : problem.operands) specs.push_back(spec ? &*spec : nullptr);
  return state_of(context_).plan(*problem.operation, specs, problem.options, problem.requested,
                                 call_options());
} catch (...) {
  rethrow_as_error();
}

TuneReport Executor::tune(const Case& shape, std::string_view operation,
                          const EventSink& progress) const try {
  runtime::ContextState& context = state_of(context_);
  Case precise = shape;
  precise.options = context.with_precision(shape.options, call_options());
  const Problem problem =
      make_problem(find_operation(operation), precise.operands, precise.options);
  return context.tune(problem, precise, policy_.value_or(current_policy()), progress, variant_);
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
