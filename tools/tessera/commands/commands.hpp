// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each file declares its options on a sub-app and says what to run once they are
// parsed.
#pragma once

#include <functional>

#include "tessera/command_line.hpp"

namespace tessera::tool {

struct Command {
  App* app = nullptr;
  std::function<int()> run;  // the exit code: 0, or 1 when something failed
  bool times = false;        // how long kernels take is what it is about
};

Command add_devices(App& tool);
Command add_run(App& tool);
Command add_check(App& tool);
Command add_bench(App& tool);
Command add_tune(App& tool);
Command add_cache(App& tool);
Command add_try(App& tool);

}  // namespace tessera::tool
