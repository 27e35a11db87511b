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
  // `scratch` is shared by the candidates, of which one runs at a time.
  DeviceTrial(ContextState& context, Workbench& bench, device::BufferPtr& scratch,
              const selection::Candidate& candidate)
      : context_(context),
        bench_(bench),
        scratch_(scratch),
        plan_(make_plan(bench.problem(),
                        {.variant = candidate.variant->name, .config = candidate.config},
                        context.profile(), context.programs())) {}

  double verify() override {
    const Verdict first = run();
    const std::string bits = bench_.output_bits();
    run();
    if (bits != bench_.output_bits()) throw Error("two runs gave different bits");
    return first.worst;
  }

  double time() override {
    if (plan_->scratch_bytes > 0 && (!scratch_ || scratch_->size() < plan_->scratch_bytes)) {
      scratch_ = nullptr;
      scratch_ = context_.create_buffer(plan_->scratch_bytes);
    }
    return timer_.time();
  }

 private:
  Verdict run() {
    bench_.reset_outputs();
    context_.default_stream()->launch(*plan_, bench_.buffers());
    const Verdict verdict = bench_.verify(*plan_);
    if (!verdict.failure.empty()) throw Error(verdict.failure);
    return verdict;
  }

  ContextState& context_;
  Workbench& bench_;
  device::BufferPtr& scratch_;
  std::shared_ptr<const Plan> plan_;
  Timer timer_{context_, *plan_, bench_.buffers(), scratch_};
};

}  // namespace

selection::MakeTrial trial_factory(ContextState& context, const Problem& problem,
                                   const Case& shape) {
  auto bench = std::make_shared<Workbench>(context, *problem.operation, shape, kMaxReferenceFlops);
  auto scratch = std::make_shared<device::BufferPtr>();
  return [&context, bench, scratch](const selection::Candidate& candidate) {
    return std::make_unique<DeviceTrial>(context, *bench, *scratch, candidate);
  };
}

}  // namespace tessera::runtime
