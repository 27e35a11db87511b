// SPDX-License-Identifier: Apache-2.0
// What the checks of a family cost on a backend, and what they may.
#pragma once

#include <cstddef>
#include <string>

#include "conformance/conformance.hpp"

namespace tessera::testing {

struct Ledger {
  std::string family;
  Backend backend = Backend::kHost;
  std::size_t programs = 0;  // count_programs(); OpenCL programs, Vulkan pipelines
  conformance::Spent spent{};
};

// Of those that a family's checks built, what they cost the whole run: a program of another
// family's kernels, which operations call, is built once, and counts there if that family's own
// checks build it, too.
std::size_t count_programs(const Context& context, const std::string& family,
                           const conformance::Built& built);

// Programs that the default run of a family may build on a processor. A program takes its compiler
// 0.1 to 10 seconds there, so their number is what a test run costs.
std::size_t budget_of(const std::string& family, Backend backend);

// "attention on opencl: 57 programs (of 60), compilers 61.2 s, …"; the budget is that of a default
// run, and left out of others.
std::string to_string(const Ledger& ledger, bool with_budget);

// Adds a line to a file that several processes may write.
void append_line(const std::string& file, const std::string& line);

}  // namespace tessera::testing
