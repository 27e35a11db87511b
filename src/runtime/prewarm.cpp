// SPDX-License-Identifier: Apache-2.0
#include "tessera/prewarm.hpp"

#include <numeric>

#include "base/system/out_of_memory.hpp"
#include "base/tensors/byte_range.hpp"
#include "runtime/context_state.hpp"

namespace tessera {
namespace {

// On a stream and operands of its own: nobody waits for it but this call.
void run_once(runtime::ContextState& context, const runtime::Plan& plan) {
  const std::shared_ptr<runtime::StreamState> stream = context.create_stream();
  runtime::WorkMemory memory = context.create_work_memory();
  std::vector<device::BufferPtr> operands;
  for (const auto& spec : plan.problem.operands) {
    operands.push_back(spec ? context.create_tensor(*spec).buffer() : nullptr);
    if (!spec) continue;
    stream->use([&](device::Stream& queue) {
      queue.fill(*operands.back(), 0, operands.back()->size(), 0);
    });
  }
  stream->use([&](device::Stream& queue) {
    runtime::launch(plan, queue, memory.of(plan, operands));
    queue.synchronize();
  });
}

}  // namespace

Problem problem_of(std::string_view operation, const Specs& operands, Options options,
                   const std::vector<std::string>& wanted) try {
  const Operation& record = find_operation(operation);
  std::vector<std::optional<TensorSpec>> by_slot(record.operands.size());
  for (const auto& [name, spec] : operands) by_slot[record.slot(name)] = spec;
  std::vector<bool> requested(record.operands.size(), false);
  for (const std::string& name : wanted) requested[record.slot(name)] = true;
  return make_problem(record, std::move(by_slot), std::move(options), std::move(requested));
} catch (...) {
  rethrow_as_error();
}

std::optional<std::string> query_support(const Executor& executor, const Problem& problem) try {
  executor.explain(problem);
  return std::nullopt;
} catch (const Unsupported& no) {
  return no.what();
} catch (...) {
  rethrow_as_error();
}

void prewarm(const Executor& executor, std::span<const Problem> problems) try {
  runtime::ContextState& context = runtime::state_of(executor.context());
  for (const Problem& problem : problems) {
    const std::shared_ptr<const runtime::Plan> plan = executor.plan(problem);
    if (context.profile().backend != Backend::kHost && is_cpu(context.profile()))
      run_once(context, *plan);
  }
} catch (...) {
  rethrow_as_error();
}

void set_max_dispatch_ms(const Context& context, double milliseconds) try {
  if (!(milliseconds >= 0)) {
    throw InvalidArgument("max_dispatch_ms is " + std::to_string(milliseconds) +
                          "; it is a time, or 0 for none");
  }
  runtime::state_of(context).set_max_dispatch_seconds(milliseconds * 1e-3);
} catch (...) {
  rethrow_as_error();
}

std::uint64_t scratch_bytes(const Executor& executor, const Problem& problem) try {
  const std::shared_ptr<const runtime::Plan> plan = executor.plan(problem);
  return std::accumulate(plan->scratch_bytes.begin(), plan->scratch_bytes.end(), std::uint64_t{0});
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
