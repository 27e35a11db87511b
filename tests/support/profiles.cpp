// SPDX-License-Identifier: Apache-2.0
#include "support/profiles.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "selection/profile_json.hpp"
#include "tessera/error.hpp"

namespace tessera::testing {
namespace {

std::filesystem::path directory() {
  return std::filesystem::path(__FILE__).parent_path().parent_path() / "devices";
}

}  // namespace

DeviceProfile load_profile(const std::string& name) {
  const std::filesystem::path path = directory() / (name + ".json");
  std::ifstream stream(path);
  const auto json = nlohmann::json::parse(stream, nullptr, false);
  std::string problem = stream.is_open() ? "it is no JSON" : "it can't be opened";
  std::optional<DeviceProfile> profile;
  if (!json.is_discarded()) profile = selection::profile_from_json(json, problem);
  // The caches ignore what they do not know; here that would be a slip of the pen.
  if (profile && nlohmann::json(selection::profile_to_json(*profile)) != json) {
    problem = "it holds an unknown name, or a 0 that says nothing";
  }
  if (!problem.empty()) throw Error(path.string() + ": " + problem);
  return *profile;
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory())) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace tessera::testing
