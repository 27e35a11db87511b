// SPDX-License-Identifier: Apache-2.0
// Contexts that live as long as the process, or nearly: DEVICE SCENARIO PLUGIN. Each scenario is a
// process of its own, since what goes wrong goes wrong at its end; "all" starts them one after the
// other. Exits with 0 if all was well, 77 if there is no such device.
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "lifetime/work.hpp"

namespace {

using namespace tessera;  // NOLINT(google-build-using-namespace)
using testing::open_plainly;
using testing::runs_right;

std::string selector;
std::string plugin_path;
Context global;  // constructed before every driver and every static of the library

bool in_static() {
  static const Context context = open_plainly(selector);
  return runs_right(context);
}

bool in_global() {
  global = open_plainly(selector);
  return runs_right(global);
}

bool in_thread_local() {
  const auto run = [] {
    thread_local const Context context = open_plainly(selector);
    return runs_right(context);
  };
  bool other = false;
  std::thread([&] { other = run(); }).join();
  return run() && other;
}

// Streams and tensors that outlive their context.
bool parts_outlive() {
  static Stream stream;
  static Tensor tensor;
  const Context context = open_plainly(selector);
  stream = context.create_stream();
  tensor = context.upload(std::vector<float>{1, 2}, {1, 1, 2});
  sequence_mean(Executor(context).on(stream), tensor);
  return runs_right(context);
}

// Static destructors run on the thread that calls exit(); the main thread never ends.
bool exit_elsewhere() {
  static const Context context = open_plainly(selector);
  const bool right = runs_right(context);
  std::thread([right] { std::exit(right ? 0 : 1); }).join();
  return false;
}

// A destructor of the program's that calls once more: it gets its result or an Error.
struct CallsAtExit {
  ~CallsAtExit() {
    bool well = true;
    try {
      well = runs_right(global);
    } catch (const Error& error) {
      well = error.what() != std::string();
    }
    if (!well) std::_Exit(1);
  }
};
const CallsAtExit calls_at_exit;

// What this thread ran on a context that another thread then replaced, often at the same address,
// is nothing that it ran on the new one.
bool last_execution_is_own() {
  for (int round = 0; round < 20; ++round) {
    Context context = open_plainly(selector);
    if (!runs_right(context)) return false;
    std::thread([&] {
      context = Context();
      context = open_plainly(selector);
    }).join();
    try {
      context.last_execution();
      return false;
    } catch (const InvalidArgument&) {
    }
  }
  return true;
}

bool run_plugin(bool unload) {
  void* library = dlopen(plugin_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return false;
  }
  const auto run = reinterpret_cast<bool (*)(const char*)>(dlsym(library, "tessera_run_on_static"));
  const bool right = run != nullptr && run(selector.c_str());
  return !unload ? right : dlclose(library) == 0 && right;
}

// Under a limit that leaves no memory, or a little, calls on the host work or throw an Error.
bool in_little_memory() {
  const Context context = open_plainly(selector);
  const Tensor rows = context.upload(std::vector<float>(4 * 256 * 64, 0.5F), {1, 256, 4, 64});
  const auto run = [&] {
    const Context again = open_plainly(selector);
    const auto output = context.download<float>(flash_attention(context, rows, rows, rows));
    return output.size() == 4 * 256 * 64 && std::abs(output.back() - 0.5F) < 1e-6F &&
           runs_right(again);
  };
  rlimit unlimited{};
  getrlimit(RLIMIT_AS, &unlimited);
  int refused = 0;
  for (std::size_t spare = 0; spare <= std::size_t{256} << 20; spare = 2 * spare + 4096) {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    if (!(statm >> pages)) break;  // no such system: nothing is limited
    rlimit limit = unlimited;
    limit.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + spare;
    setrlimit(RLIMIT_AS, &limit);
    bool right = true;
    try {
      right = run();
    } catch (const Error&) {
      ++refused;
    }
    setrlimit(RLIMIT_AS, &unlimited);
    if (!right) return false;
  }
  return run() && refused > 0;
}

using Scenarios = std::map<std::string, std::function<bool()>>;

const Scenarios& scenarios() {
  static const Scenarios all{
      {"static", in_static},
      {"global", in_global},
      {"thread_local", in_thread_local},
      {"parts_outlive", parts_outlive},
      {"exit_elsewhere", exit_elsewhere},
      {"last_execution", last_execution_is_own},
      {"plugin", [] { return run_plugin(false); }},
      {"unloaded_plugin", [] { return run_plugin(true); }},
      // Of drivers in such need nobody can promise anything.
      {"little_memory", [] { return selector != "host" || in_little_memory(); }}};
  return all;
}

// This program again, before any driver has been started.
int run_child(char** argv, const std::string& scenario) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    execl(argv[0], argv[0], argv[1], scenario.c_str(), plugin_path.c_str(), nullptr);
    std::_Exit(3);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  if (WIFSIGNALED(status)) std::printf("%s: signal %d\n", scenario.c_str(), WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int run_all(char** argv) {
  int result = 0;
  for (const auto& [name, scenario] : scenarios()) {
    const int code = run_child(argv, name);
    if (code == 77) return code;
    std::printf("%s %s\n", name.c_str(), code == 0 ? "passed" : "FAILED");
    if (code != 0) result = 1;
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 2 ? argv[2] : "";
  if (name != "all" && !scenarios().contains(name)) {
    std::fprintf(stderr, "usage: %s DEVICE all|SCENARIO PLUGIN\n", argv[0]);
    return 2;
  }
  selector = argv[1];
  if (argc > 3) plugin_path = argv[3];
  if (name == "all") return run_all(argv);
  try {
    open_plainly(selector);
  } catch (const NoDevice& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  return scenarios().at(name)() ? 0 : 1;
}
