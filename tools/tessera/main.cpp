// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "base/system/environment.hpp"
#include "tessera/commands/commands.hpp"
#include "tessera/output/say.hpp"
#include "tessera/output/usage.hpp"
#include "tessera/version.hpp"

namespace tessera::tool {
namespace {

constexpr int kFailure = 1;
constexpr int kWrongUsage = 2;

int complain(const std::string& what, int code) {
  std::cout.flush();
  note(what);
  return code;
}

// PoCL starts a thread for each core, but two of them may share one for as long as they live.
void pin_threads() {
#ifndef _WIN32
  constexpr int kUnlessSet = 0;
  setenv("POCL_AFFINITY", "1", kUnlessSet);
#endif
}

int dispatch(int argc, char** argv) {
  App tool("Deep-learning kernels on every OpenCL and Vulkan device.", "tessera");
  tool.set_version_flag("--version", std::string("tessera ") + kVersion);
  tool.require_subcommand();
  tool.footer(
      "Examples:\n"
      "  tessera devices                 what is there\n"
      "  tessera run --list              what can be run on it\n"
      "  tessera run flash_attention --input query=q.npy key=k.npy value=v.npy \\\n"
      "      --set causal=true --output output=o.npy\n"
      "  tessera try                     flash attention on every device, checked and timed\n\n"
      "Exit codes: 0 all went well, 1 something failed, 2 wrong usage.\n"
      "'tessera COMMAND --help' tells more. Environment variables: docs/environment.md.");
  const std::vector<Command> commands{add_devices(tool), add_run(tool),  add_check(tool),
                                      add_bench(tool),   add_tune(tool), add_cache(tool),
                                      add_try(tool)};
  if (!tool.parse(argc, argv)) return 0;
  as_usage([] { environment(); });  // a malformed variable is found before anything is done
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    if (command.times) pin_threads();
    const int code = command.run();
    std::cout.flush();
    if (!std::cout) return complain("standard output cannot be written", kFailure);
    return code;
  }
  return kFailure;
}

int guarded(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const UsageError& error) {
    return complain(one_line(error.what()), kWrongUsage);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kFailure);
  } catch (const BuildError& error) {
    std::cout.flush();
    note_lines(error.what());  // with the compiler's log as it is
    return kFailure;
  } catch (const std::exception& error) {
    return complain(one_line(error.what()), kFailure);
  } catch (...) {
    return complain("an unknown exception", kFailure);
  }
}

}  // namespace
}  // namespace tessera::tool

int main(int argc, char** argv) {
  const tessera::tool::EscapedOutput escaped(std::cout);
  return tessera::tool::guarded(argc, argv);
}
