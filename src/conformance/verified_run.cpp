// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <optional>
#include <vector>

#include "conformance/conformance.hpp"
#include "conformance/probe.hpp"
#include "device/clock.hpp"
#include "runtime/timer.hpp"
#include "runtime/workbench.hpp"

namespace tessera::conformance {
namespace {

constexpr int kLeastRounds = 5;
constexpr int kMostRounds = 1000;
// Beyond this the reference checks a sample of the rows: a benchmark shape must not wait minutes
// for the oracle.
constexpr double kMaxReferenceFlops = 4e9;

double bytes_per_element(DType dtype) { return static_cast<double>(bits_of(dtype)) / 8; }

double operand_bytes(const Problem& problem) {
  double bytes = 0;
  for (const auto& spec : problem.operands) {
    if (spec) bytes += static_cast<double>(spec->elements()) * bytes_per_element(spec->dtype);
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
    if (!problem.has(slot) || !is_written(problem.operation->operands[slot].role)) continue;
    const TensorSpec& spec = problem.spec(slot);
    written += static_cast<double>(spec.elements()) * bytes_per_element(spec.dtype);
  }
  return 100 * written < bytes && flops <= 4 * bytes;
}

// The device's clock, looked at a few times in the seconds that a call is timed.
class ClockLog {
 public:
  ClockLog(const DeviceProfile& profile, double seconds)
      : read_(device::clock_reader(profile)), step_(seconds / 8) {}

  bool due(double total) {
    if (total < next_) return false;
    next_ = total + step_;
    return true;
  }
  void look() {
    if (const double clock = read_(); clock > 0) clocks_.push_back(clock);
  }
  double median() const { return clocks_.empty() ? 0 : median_of(clocks_); }

 private:
  std::function<double()> read_;
  double step_, next_ = 0;
  std::vector<double> clocks_;
};

}  // namespace

VerifiedRun verify_and_time(const Executor& executor, const Operation& operation, const Case& shape,
                            bool time, double min_seconds, int calls) {
  runtime::ContextState& context = *executor.context().state();
  runtime::Workbench bench(context, operation, shape, kMaxReferenceFlops);
  const Problem& problem = bench.problem();
  const auto plan = executor.plan(problem);

  VerifiedRun run;
  run.execution = *plan->execution;
  run.flops = operation.workload.flops ? operation.workload.flops(problem) : 0;
  run.bytes = operation.workload.bytes ? operation.workload.bytes(problem) : operand_bytes(problem);
  bench.launch(*plan);
  const runtime::Verdict verdict = bench.verify(*plan);
  run.worst = verdict.worst;
  run.failure = verdict.failure;
  if (!run.failure.empty() || !time) return run;

  runtime::WorkMemory memory = context.create_work_memory();
  std::optional<ReadProbe> reads;
  std::optional<ArithmeticProbe> arithmetic;
  if (measured_in_turns(executor.context())) {
    if (only_reads(problem, run.flops, run.bytes))
      reads.emplace(executor.context(), run.bytes);
    else if (run.flops > 0)
      arithmetic.emplace(executor.context(), arithmetic_of(operation, run.execution), kTurnSeconds);
  }
  ClockLog clock(context.profile(), min_seconds);
  runtime::Timer timer(context, *plan, bench.buffers(), memory);
  run.settled = warm_up(
      device::warm_up_of(context.profile()), [&] { return timer.time({}, calls); }, wall_seconds);
  std::vector<double> seconds;
  double total = 0, beside = 0;
  while ((total < min_seconds || seconds.size() < kLeastRounds) && seconds.size() < kMostRounds) {
    if (reads) reads->measure();
    if (arithmetic && beside <= total) beside += arithmetic->measure();
    // A processor would do the looking itself, so it is asked between the runs.
    bench.restore();
    const bool look = clock.due(total), beside_it = look && is_gpu(context.profile());
    seconds.push_back(beside_it ? timer.time([&] { clock.look(); }, calls) : timer.time({}, calls));
    if (look && !beside_it) clock.look();
    total += calls * seconds.back();
  }
  run.rounds = static_cast<int>(seconds.size());
  run.median_seconds = median_of(seconds);
  run.spread = spread_of(std::move(seconds));
  run.clock_mhz = clock.median();
  if (reads) run.read_bytes_per_second = reads->bytes_per_second();
  if (arithmetic) run.arithmetic_flops = arithmetic->median();
  return run;
}

}  // namespace tessera::conformance
