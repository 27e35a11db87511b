// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each file declares its options on a sub-app and says what to run once they are
// parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tessera::tool {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  // the exit code: 0, or 1 when something failed
  bool times = false;        // how long kernels take is what it is about
};

Command add_devices(CLI::App& tool);
Command add_run(CLI::App& tool);
Command add_check(CLI::App& tool);
Command add_bench(CLI::App& tool);
Command add_tune(CLI::App& tool);
Command add_cache(CLI::App& tool);
Command add_try(CLI::App& tool);

}  // namespace tessera::tool
