// SPDX-License-Identifier: Apache-2.0
// Lists every device, and says on each how a call of each operation would run there, without
// running it.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <tessera/tessera.hpp>

namespace ts = tessera;

int main() {
  try {
    const ts::Probe& probe = ts::probe_devices();
    for (const ts::ProbeFailure& failure : probe.failures) {
      std::printf("%s: %s\n", failure.where.c_str(), failure.why.c_str());
    }
    for (const ts::DeviceInfo& info : probe.devices) {
      const ts::Context context = ts::Context::open(std::to_string(info.index));
      for (const ts::Operation* operation : ts::all_operations()) {
        if (!operation->workload.benchmarks) continue;
        const ts::Case call = operation->workload.benchmarks(ts::DType::kF16).front();
        const ts::Explanation would = ts::Executor(context).explain(
            ts::make_problem(*operation, call.operands, call.options));
        std::printf("%d %s\n  %s %s\n  because: %s\n", info.index,
                    ts::summary(info.profile).c_str(), would.execution.name.c_str(),
                    call.name.c_str(), would.execution.choice.why.c_str());
        for (const ts::Refused& refused : would.refused) {
          std::printf("  not %s: %s\n", refused.variant.c_str(), refused.why.c_str());
        }
      }
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
