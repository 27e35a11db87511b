// SPDX-License-Identifier: Apache-2.0
#include "runtime/timer.hpp"

#include "base/system/timing.hpp"

namespace tessera::runtime {

double Timer::time(const std::function<void()>& meanwhile, int calls) {
  return context_.default_stream()->use([&](device::Stream& stream) {
    const Memory memory = memory_.of(plan_, buffers_);
    const int more = is_gpu(context_.profile()) ? busy_runs(last_) : 0;
    for (int run = 0; run < more; ++run) launch(plan_, stream, memory);
    const double all = stream.time([&] {
      for (int call = 0; call < calls; ++call) launch(plan_, stream, memory);
      if (!meanwhile) return;
      stream.flush();
      meanwhile();
    });
    return last_ = all / calls;
  });
}

}  // namespace tessera::runtime
