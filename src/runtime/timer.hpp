// SPDX-License-Identifier: Apache-2.0
// Times one plan, run after run, on a stream that nobody else uses meanwhile.
#pragma once

#include <functional>
#include <span>

#include "runtime/context_state.hpp"
#include "runtime/plan.hpp"

namespace tessera::runtime {

class Timer {
 public:
  // `memory` may serve several timers, of which one runs at a time.
  Timer(ContextState& context, const Plan& plan, std::span<const device::BufferPtr> buffers,
        WorkMemory& memory)
      : context_(context), plan_(plan), buffers_(buffers), memory_(memory) {}

  // Seconds of one run by the device's clock. GPUs run it a few times more before, see busy_runs().
  // `meanwhile` happens while the device works. Of `calls` runs in a row the seconds of one.
  double time(const std::function<void()>& meanwhile = {}, int calls = 1);

 private:
  ContextState& context_;
  const Plan& plan_;
  std::span<const device::BufferPtr> buffers_;
  WorkMemory& memory_;
  double last_ = 0;  // seconds of the run before
};

}  // namespace tessera::runtime
