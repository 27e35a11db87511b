// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"
#include "base/system/environment.hpp"
#include "selection/cache/cache.hpp"
#include "selection/files/files.hpp"

namespace tessera::selection {
namespace {

namespace fs = std::filesystem;

bool means_none(const std::string& text) { return text.empty() || text == "off"; }

// The path, or the reason that there is none.
CacheDirectory wanted(const std::optional<std::string>& option, bool use_environment) {
  if (option) {
    if (means_none(*option)) return {.path = {}, .why_not = "the context's options switch it off"};
    return {.path = *option, .why_not = {}};
  }
  if (!use_environment) return {.path = {}, .why_not = "the context was given no directory"};
  const Environment& variables = environment();
  if (variables.cache_directory) {
    if (means_none(*variables.cache_directory))
      return {.path = {}, .why_not = "TESSERA_CACHE_DIR is off"};
    return {.path = *variables.cache_directory, .why_not = {}};
  }
  // The XDG specification has relative paths ignored.
  const fs::path xdg = variables.xdg_cache_home;
  if (xdg.is_absolute()) return {.path = xdg / "tessera", .why_not = {}};
  const fs::path home = variables.home;
  if (home.is_absolute()) return {.path = home / ".cache" / "tessera", .why_not = {}};
  return {.path = {}, .why_not = "TESSERA_CACHE_DIR, XDG_CACHE_HOME and HOME name no directory"};
}

}  // namespace

CacheDirectory find_cache_directory(const std::optional<std::string>& option,
                                    bool use_environment) {
  const CacheDirectory directory = wanted(option, use_environment);
  std::error_code error;
  const bool missing = !directory.path.empty() &&
                       fs::symlink_status(directory.path, error).type() == fs::file_type::not_found;
  return missing ? directory : open_cache_directory(option, use_environment);
}

CacheDirectory open_cache_directory(const std::optional<std::string>& option,
                                    bool use_environment) {
  CacheDirectory directory = wanted(option, use_environment);
  if (directory.path.empty()) return directory;
  std::error_code error;
  const fs::path absolute = fs::absolute(directory.path, error);
  const auto problem = error ? error.message() : make_private_directory(absolute).value_or("");
  const std::string name = printable(directory.path.string());
  if (!problem.empty()) return {.path = {}, .why_not = name + ": " + problem};
  // From here on a link on the way can't be turned elsewhere.
  const fs::path canonical = fs::canonical(absolute, error);
  if (error) return {.path = {}, .why_not = name + ": " + error.message()};
  return {.path = canonical, .why_not = {}};
}

}  // namespace tessera::selection
