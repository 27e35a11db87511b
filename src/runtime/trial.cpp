// SPDX-License-Identifier: Apache-2.0
#include "runtime/context_state.hpp"
#include "runtime/timer.hpp"
#include "runtime/workbench.hpp"
#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

// More than this and the reference spot-checks: tuning a long sequence must not wait minutes for
// the oracle.
constexpr double kMaxReferenceFlops = 4e9;

class DeviceTrial final : public selection::Trial {
 public:
  // `memory` is shared by the candidates, of which one runs at a time.
  DeviceTrial(ContextState& context, Workbench& bench, WorkMemory& memory,
              const selection::Candidate& candidate)
      : context_(context),
        bench_(bench),
        memory_(memory),
        plan_(make_plan(bench.problem(),
                        {.variant = candidate.variant->name, .config = candidate.config},
                        context.profile(), context.programs())) {}

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
    bench_.restore();
    return timer_.time();
  }

 private:
  ContextState& context_;
  Workbench& bench_;
  WorkMemory& memory_;
  std::shared_ptr<const Plan> plan_;
  Timer timer_{context_, *plan_, bench_.buffers(), memory_};
};

}  // namespace

selection::MakeTrial trial_factory(ContextState& context, const Problem& problem,
                                   const Case& shape) {
  auto bench = std::make_shared<Workbench>(context, *problem.operation, shape, kMaxReferenceFlops);
  auto memory = std::make_shared<WorkMemory>(context.create_work_memory());
  return [&context, bench, memory](const selection::Candidate& candidate) {
    return std::make_unique<DeviceTrial>(context, *bench, *memory, candidate);
  };
}

}  // namespace tessera::runtime
