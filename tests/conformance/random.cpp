// SPDX-License-Identifier: Apache-2.0
#include "conformance/random.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "conformance/device.hpp"
#include "operations/attention/random.hpp"
#include "tessera/error.hpp"

namespace tessera::testing {
namespace {

// A kernel that crashes takes the process with it; this is what is left to say then.
char last_words[256];

extern "C" void say_last_words(int signal_number) {
  static_cast<void>(!::write(STDOUT_FILENO, last_words, std::strlen(last_words)));
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

int run_on(const std::string& selector, std::uint64_t count, std::uint64_t seed) {
  const auto device = first_device(selector);
  if (!device) return kNoDevice;
  const Context context = Context::open({.device = std::to_string(device->index)});
  std::printf("%s\n", tessera::summary(context.device()).c_str());
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    std::signal(signal_number, say_last_words);
  const auto prepare = [&](std::uint64_t next) {
    std::snprintf(last_words, sizeof last_words,
                  "FAILED: crashed\n  replay: tessera_conformance --random 1 --seed %llu %s\n",
                  static_cast<unsigned long long>(next), selector.c_str());
  };
  prepare(seed);
  const RandomSummary result =
      check_random_attention(context, seed, count, [&](const RandomResult& each) {
        prepare(each.seed + 1);
        if (each.failure.empty()) return;
        std::printf("FAILED %s: %s\n  replay: tessera_conformance --random 1 --seed %llu %s\n",
                    each.name.c_str(), each.failure.c_str(),
                    static_cast<unsigned long long>(each.seed), selector.c_str());
      });
  for (const auto& [variant, runs] : result.variants)
    std::printf("  %zu of %s\n", runs, variant.c_str());
  for (const auto& [why, runs] : result.skipped)
    std::printf("  skipped %zu: %s\n", runs, why.c_str());
  if (!result.worst_name.empty())
    std::printf("  worst error %.2f of its bound: %s\n", result.worst, result.worst_name.c_str());
  std::printf("random: %zu passed (%zu of them show little), %zu failed\n", result.passed,
              result.mistrusted, result.failed);
  return result.failed == 0 && result.passed > 0 ? 0 : 1;
}

}  // namespace

int run_random(const std::string& selector, std::uint64_t count, std::uint64_t seed) {
  try {
    return run_on(selector, count, seed);
  } catch (const Error& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
}

}  // namespace tessera::testing
