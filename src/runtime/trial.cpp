// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/system/work_ahead.hpp"
#include "runtime/context_state.hpp"
#include "runtime/timer.hpp"
#include "runtime/workbench.hpp"
#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

// More than this and the reference spot-checks: tuning a long sequence must not wait minutes for
// the oracle.
constexpr double kMaxReferenceFlops = 4e9;

std::shared_ptr<const Plan> plan_of(ContextState& context, const Problem& problem,
                                    const selection::Candidate& candidate) {
  return make_plan(problem, {.variant = candidate.variant->name, .config = candidate.config},
                   context.profile(), context.programs());
}

// Drivers of GPUs compile for seconds, during which one candidate after the other would wait.
// Where eight threads asked NVIDIA's OpenCL, the first candidate waited for the others: it seems to
// compile one program at a time. A CPU has its cores to itself.
std::size_t threads_that_build(const DeviceProfile& profile) {
  constexpr unsigned kMost = 8;
  if (profile.backend == Backend::kHost || is_cpu(profile)) return 0;
  if (profile.backend == Backend::kOpenCL) return 1;
  return std::clamp(std::thread::hardware_concurrency(), 1U, kMost);
}

// What the candidates of a call share; one of them runs at a time.
struct Bench {
  Bench(ContextState& context, const Problem& problem, const Case& shape,
        const std::vector<selection::Candidate>& candidates)
      : builds(threads_that_build(context.profile()), candidates.size(),
               [&context, problem, candidates](std::size_t i) {
                 plan_of(context, problem, candidates[i]);
               }),
        work(context, *problem.operation, shape, kMaxReferenceFlops),
        memory(context.create_work_memory()) {}

  WorkAhead builds;
  Workbench work;
  WorkMemory memory;
};

class DeviceTrial final : public selection::Trial {
 public:
  DeviceTrial(ContextState& context, Bench& bench, const selection::Candidate& candidate)
      : context_(context),
        builds_(bench.builds),
        bench_(bench.work),
        memory_(bench.memory),
        plan_(plan_of(context, bench_.problem(), candidate)) {}

  double verify() override {
    bench_.launch(*plan_);
    const Verdict verdict = bench_.verify(*plan_);
    if (!verdict.failure.empty()) throw Error(verdict.failure);
    const std::string bits = bench_.output_bits();
    bench_.launch(*plan_);
    if (bits != bench_.download_bits()) throw Error("two runs gave different bits");
    return verdict.worst;
  }

  double time() override {
    // The first run only shows about how long one takes; when runs count, nothing else does.
    if (std::exchange(has_run_, true)) builds_.stop();
    bench_.restore();
    return timer_.time();
  }

 private:
  ContextState& context_;
  WorkAhead& builds_;
  Workbench& bench_;
  WorkMemory& memory_;
  std::shared_ptr<const Plan> plan_;
  bool has_run_ = false;
  Timer timer_{context_, *plan_, bench_.buffers(), memory_};
};

}  // namespace

selection::MakeTrial trial_factory(ContextState& context, const Problem& problem, const Case& shape,
                                   const std::vector<selection::Candidate>& candidates) {
  auto bench = std::make_shared<Bench>(context, problem, shape, candidates);
  return [&context, bench](const selection::Candidate& candidate) {
    return std::make_unique<DeviceTrial>(context, *bench, candidate);
  };
}

}  // namespace tessera::runtime
