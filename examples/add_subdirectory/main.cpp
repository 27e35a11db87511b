// SPDX-License-Identifier: Apache-2.0
// Lists every device, and says on each how a call would run there, without running it.
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
      const ts::Tensor heads = context.empty(ts::DType::kF16, {1, 1024, 8, 64});
      const ts::Explanation would = ts::Executor(context).explain(
          "flash_attention", {{"query", heads}, {"key", heads}, {"value", heads}},
          {{"causal", true}});
      std::printf("%d %s\n  %s\n  because: %s\n", info.index, ts::summary(info.profile).c_str(),
                  would.execution.name.c_str(), would.execution.choice.why.c_str());
      for (const ts::Refused& refused : would.refused) {
        std::printf("  not %s: %s\n", refused.variant.c_str(), refused.why.c_str());
      }
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
