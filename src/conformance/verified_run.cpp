// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>

#include "conformance/conformance.hpp"
#include "conformance/probe.hpp"
#include "runtime/workbench.hpp"

namespace tessera::conformance {
namespace {

constexpr int kLeastRounds = 5;
constexpr int kMostRounds = 1000;
// Beyond this the reference checks a sample of the rows: a benchmark shape must not wait minutes
// for the oracle.
constexpr double kMaxReferenceFlops = 4e9;

double operand_bytes(const Problem& problem) {
  double bytes = 0;
  for (const auto& spec : problem.operands) {
    if (spec)
      bytes += static_cast<double>(spec->elements()) * static_cast<double>(size_of(spec->dtype));
  }
  return bytes;
}

constexpr double kTurnSeconds = 0.004;  // of arithmetic beside a call; PoCL starts one in 20 us

// The unit that multiplies in what was chosen.
Arithmetic arithmetic_of(const Operation& operation, const Execution& execution) {
  const Variant* variant = operation.find_variant(execution.choice.variant);
  const bool dots = variant != nullptr && has(variant->needs.features, Feature::kCpuBf16Dot);
  return dots ? Arithmetic::kBf16Dot : Arithmetic::kFma;
}

// Does this call wait for what it reads on any CPU? They make several multiply-adds in the time of
// a byte; and what it writes does not count.
bool only_reads(const Problem& problem, double flops, double bytes) {
  double written = 0;
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    if (!problem.has(slot) || problem.operation->operands[slot].role != Role::kOutput) continue;
    const TensorSpec& spec = problem.spec(slot);
    written += static_cast<double>(spec.elements()) * static_cast<double>(size_of(spec.dtype));
  }
  return 100 * written < bytes && flops <= 4 * bytes;
}

}  // namespace

VerifiedRun verify_and_time(const Executor& executor, const Operation& operation, const Case& shape,
                            bool time, double min_seconds) {
  runtime::ContextState& context = *executor.context().state();
  runtime::Workbench bench(context, operation, shape, kMaxReferenceFlops);
  const Problem& problem = bench.problem();
  const auto plan = executor.plan(problem);

  VerifiedRun run;
  run.execution = *plan->execution;
  run.flops = operation.workload.flops ? operation.workload.flops(problem) : 0;
  run.bytes = operation.workload.bytes ? operation.workload.bytes(problem) : operand_bytes(problem);
  bench.reset_outputs();
  context.default_stream()->launch(*plan, bench.buffers());
  const runtime::Verdict verdict = bench.verify(*plan);
  run.worst = verdict.worst;
  run.failure = verdict.failure;
  if (!run.failure.empty() || !time) return run;

  const device::BufferPtr scratch =
      plan->scratch_bytes > 0 ? context.create_buffer(plan->scratch_bytes) : nullptr;
  std::optional<ReadProbe> reads;
  std::optional<ArithmeticProbe> arithmetic;
  if (measured_in_turns(executor.context())) {
    if (only_reads(problem, run.flops, run.bytes))
      reads.emplace(executor.context(), run.bytes);
    else if (run.flops > 0)
      arithmetic.emplace(executor.context(), arithmetic_of(operation, run.execution), kTurnSeconds);
  }
  std::vector<double> seconds;
  double total = 0, beside = 0;
  while ((total < min_seconds || seconds.size() < kLeastRounds) && seconds.size() < kMostRounds) {
    if (reads) reads->measure();
    if (arithmetic && beside <= total) beside += arithmetic->measure();
    seconds.push_back(context.default_stream()->use([&](device::Stream& stream) {
      return stream.time([&] { runtime::launch(*plan, stream, bench.buffers(), scratch); });
    }));
    total += seconds.back();
  }
  std::ranges::sort(seconds);
  const auto quantile = [&](double q) {
    return seconds[static_cast<std::size_t>(q * static_cast<double>(seconds.size() - 1))];
  };
  run.rounds = static_cast<int>(seconds.size());
  run.median_seconds = quantile(0.5);
  run.spread = run.median_seconds > 0 ? (quantile(0.9) - quantile(0.1)) / run.median_seconds : 0;
  if (reads) run.read_bytes_per_second = reads->bytes_per_second();
  if (arithmetic) run.arithmetic_flops = arithmetic->median();
  return run;
}

}  // namespace tessera::conformance
