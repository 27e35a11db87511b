// SPDX-License-Identifier: Apache-2.0
#include "conformance/random.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "base/hash.hpp"
#include "conformance/device.hpp"
#include "kernel/embedded.hpp"
#include "operations/attention/random.hpp"
#include "operations/cells/random.hpp"
#include "operations/matmul/random.hpp"
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

// A line every ten seconds, of runs that may be stopped from outside.
class Progress {
 public:
  void take(const RandomResult& each) {
    ++(!each.skipped.empty() ? skipped_ : each.failure.empty() ? passed_ : failed_);
    std::fflush(stdout);
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + kInterval;
    std::fprintf(stderr, "  %zu passed, %zu failed, %zu skipped; at seed %llu\n", passed_, failed_,
                 skipped_, static_cast<unsigned long long>(each.seed));
  }

 private:
  static constexpr std::chrono::seconds kInterval{10};
  std::size_t passed_ = 0, failed_ = 0, skipped_ = 0;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kInterval;
};

const std::map<std::string, decltype(&check_random_attention)>& generators() {
  static const std::map<std::string, decltype(&check_random_attention)> list{
      {"attention", check_random_attention},
      {"cells", check_random_cells},
      {"matmul", check_random_matmul}};
  return list;
}

int run_on(const std::string& selector, const std::string& family, std::uint64_t count,
           std::uint64_t seed) {
  const auto device = first_device(selector);
  if (!device) return kNoDevice;
  const Context context = Context::open({.device = std::to_string(device->index)});
  std::printf("%s\n  %llu calls from seed %llu on\n", tessera::summary(context.device()).c_str(),
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(seed));
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    std::signal(signal_number, say_last_words);
  const std::string replay = "tessera_conformance --random 1 --random-of " + family;
  const auto prepare = [&](std::uint64_t next) {
    std::snprintf(last_words, sizeof last_words, "FAILED: crashed\n  replay: %s --seed %llu %s\n",
                  replay.c_str(), static_cast<unsigned long long>(next), selector.c_str());
  };
  prepare(seed);
  Progress progress;
  const RandomSummary result =
      generators().at(family)(context, seed, count, [&](const RandomResult& each) {
        prepare(each.seed + 1);
        if (!each.failure.empty()) {
          std::printf("FAILED %s: %s\n  replay: %s --seed %llu %s\n", each.name.c_str(),
                      each.failure.c_str(), replay.c_str(),
                      static_cast<unsigned long long>(each.seed), selector.c_str());
        }
        progress.take(each);
      });
  for (const auto& [variant, runs] : result.variants)
    std::printf("  %zu of %s\n", runs, variant.c_str());
  for (const auto& [why, runs] : result.skipped)
    std::printf("  skipped %zu: %s\n", runs, why.c_str());
  if (result.programs > 0)
    std::printf("  %zu programs, %zu of them of the quick table\n", result.programs,
                result.programs_of_the_table);
  if (!result.worst_name.empty())
    std::printf("  worst error %.2f of its bound: %s\n", result.worst, result.worst_name.c_str());
  std::printf("random: %zu passed (%zu of them show little), %zu failed\n", result.passed,
              result.mistrusted, result.failed);
  return result.failed == 0 && result.passed > 0 ? 0 : 1;
}

}  // namespace

std::uint64_t seed_of_the_kernels() {
  std::string digests;
  for (const kernel::EmbeddedFile& file : kernel::embedded_files()) digests += hash128(file.text);
  for (const kernel::EmbeddedModule& module : kernel::embedded_modules())
    digests += hash128(std::as_bytes(module.words));
  return std::stoull(hash128(digests).substr(0, 8), nullptr, 16);
}

const std::vector<std::string>& random_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, generator] : generators()) list.push_back(name);
    return list;
  }();
  return names;
}

int run_random(const std::string& selector, const std::string& family, std::uint64_t count,
               std::uint64_t seed) {
  try {
    return run_on(selector, family, count, seed);
  } catch (const Error& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
}

}  // namespace tessera::testing
