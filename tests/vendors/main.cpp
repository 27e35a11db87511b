// SPDX-License-Identifier: Apache-2.0
// Builds every program that the library would build for its conformance cases and benchmarks on a
// device, and runs none; prints what the compiler says of them, one line of JSON per program. The
// device need not exist: tools/vendors.sh runs this with stand-ins. Or writes the OpenCL C that
// would be built for a recorded profile, for the compilers that take it without a device
// (tests/vendors/offline.py).
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>

#include "base/hash.hpp"
#include "device/platforms.hpp"
#include "kernel/hash_of_kernels.hpp"
#include "selection/profile_json.hpp"
#include "tessera/error.hpp"
#include "vendors/recorder.hpp"
#include "vendors/walk.hpp"

namespace tessera::vendors {
namespace {

struct Arguments {
  std::string device, profile, directory, config;
  std::vector<std::uint32_t> dims;
  std::vector<int> programs;
  bool only_profile = false, list = false;
  Wanted wanted;
};

DeviceProfile read_profile(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw InvalidArgument(path + ": it can't be read");
  std::string problem = "it is no JSON";
  const auto json = nlohmann::json::parse(file, nullptr, false);
  std::optional<DeviceProfile> profile;
  if (!json.is_discarded()) profile = selection::profile_from_json(json, problem);
  if (!profile) throw InvalidArgument(path + ": " + problem);
  return *profile;
}

struct Target {
  DeviceProfile profile{};
  device::DevicePtr real{};
};

Target open_target(const Arguments& arguments) {
  if (!arguments.profile.empty()) return {.profile = read_profile(arguments.profile)};
  auto& platforms = device::Platforms::of_this_process();
  const device::PartialProbe partial = platforms.probe(arguments.device);
  const auto found = select_devices(partial.probe, arguments.device);
  if (found.empty()) throw NoDevice("no device '" + arguments.device + "'");
  if (found.front().profile.backend == Backend::kHost)
    throw Unsupported("the host runs the references, and nothing is compiled for it");
  const auto index = static_cast<std::size_t>(found.front().index);
  // A driver takes abilities back when the device is opened.
  device::DevicePtr real = platforms.at(partial.routes[index]).open();
  return {.profile = real->profile(), .real = real};
}

// As tests/devices has them: a line for each member.
void print_profile(const DeviceProfile& profile) {
  std::string text;
  const nlohmann::ordered_json json = selection::profile_to_json(profile);
  for (const auto& [name, value] : json.items())
    text += (text.empty() ? "{\n \"" : ",\n \"") + name + "\": " + value.dump();
  std::cout << text << "\n}\n";
}

// What is compiled here; tests/vendors/report.py puts nothing beside one another that differs in
// it.
std::string hash_of_all_kernels(Backend backend) {
  std::string all;
  for (const Operation* operation : all_operations())
    all += kernel::hash_of_kernels(*operation, backend);
  return hash128(all);
}

int run(const Arguments& arguments) {
  if (arguments.device.empty() && arguments.profile.empty())
    throw InvalidArgument(
        "name a device, as TESSERA_DEVICE does, or --profile FILE; --help says more");
  const Target target = open_target(arguments);
  if (arguments.only_profile) {
    print_profile(target.profile);
    return 0;
  }
  if (!arguments.directory.empty()) std::filesystem::create_directories(arguments.directory);
  std::cout << nlohmann::ordered_json{{"device", selection::profile_to_json(target.profile)},
                                      {"kernels", hash_of_all_kernels(target.profile.backend)}}
                   .dump()
            << '\n';
  Recorder recorder(target.profile, arguments.list ? nullptr : target.real, arguments.directory);
  recorder.set_dims({arguments.dims.begin(), arguments.dims.end()});
  recorder.set_only({arguments.programs.begin(), arguments.programs.end()});
  build_all(recorder, arguments.wanted);
  std::cout << nlohmann::ordered_json{{"programs", recorder.programs()},
                                      {"failures", recorder.failures()}}
                   .dump()
            << '\n';
  if (recorder.programs() == 0 && recorder.failures() == 0)
    std::cerr << "no program of this device is what the options ask for\n";
  return recorder.failures() == 0 && recorder.programs() > 0 ? 0 : 1;
}

}  // namespace
}  // namespace tessera::vendors

int main(int argc, char** argv) {
  CLI::App app(
      "Builds the programs of all operations for a device and prints what its compiler says of "
      "them,\n"
      "a line of JSON for each. tests/vendors/vendors.py runs it for GPUs that are not here.");
  tessera::vendors::Arguments arguments;
  tessera::vendors::Wanted& wanted = arguments.wanted;
  CLI::Option* device =
      app.add_option("device", arguments.device, "To build for, by the words of TESSERA_DEVICE");
  CLI::Option* profile =
      app.add_option("--profile", arguments.profile, "Of a device that is not here, as JSON");
  CLI::Option* directory =
      app.add_option("--sources", arguments.directory, "Where its OpenCL C is written");
  CLI::Option* list = app.add_flag("--list", arguments.list, "Lists programs and builds none");
  profile->excludes(device);
  directory->needs(profile)->excludes(list);
  app.add_flag("--only-profile", arguments.only_profile, "Prints the device's profile only");
  app.add_option("--level", wanted.level,
                 "0: what the rules choose. 1: and each variant's first configuration. 2: and all")
      ->check(CLI::Range(0, 2));
  app.add_option("--operation", wanted.operation, "Whose name contains this");
  CLI::Option* variant = app.add_option("--variant", wanted.variant, "This one only");
  app.add_option("--config", arguments.config, "This configuration, where it fits")->needs(variant);
  app.add_option("--case", wanted.call, "Whose name contains this");
  app.add_option("--dtype", wanted.dtype, "This one only");
  app.add_option("--dims", arguments.dims, "Of HEAD_DIM, where a program has one")->delimiter(',');
  app.add_option("--programs", arguments.programs, "Those with these numbers of the list")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  try {
    if (!arguments.config.empty()) wanted.config = tessera::Config::parse(arguments.config);
    return tessera::vendors::run(arguments);
  } catch (const tessera::Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
