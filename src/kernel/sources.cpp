// SPDX-License-Identifier: Apache-2.0
#include "kernel/sources.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include "base/printable.hpp"
#include "base/system/environment.hpp"
#include "base/system/read_file.hpp"
#include "kernel/embedded.hpp"
#include "tessera/error.hpp"

namespace tessera::kernel {
namespace {

constexpr std::uint64_t kMostSource = 4U << 20U;  // bytes; ours are shorter than 64 KiB

// The path of an `#include "path"` line, or nothing.
std::optional<std::string> included_path(std::string_view line) {
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#') return std::nullopt;
  const std::size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string_view::npos || !line.substr(word).starts_with("include"))
    return std::nullopt;
  const std::size_t open = line.find('"', word);
  const std::size_t close = line.find('"', open + 1);
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  return std::string(line.substr(open + 1, close - open - 1));
}

// Every include is written out, as an earlier one may stand under an #if that is false: the
// headers' own guards tell the compiler which to keep. `open` are the files that this one is
// included from.
void append(std::string_view path, std::vector<std::string>& open, std::string& out) {
  const std::string text = text_of(path);
  open.emplace_back(path);
  const auto mark = [&](std::size_t line) {
    out += "#line " + std::to_string(line) + " \"" + std::string(path) + "\"\n";
  };
  mark(1);
  std::istringstream lines(text);
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    if (const auto inner = included_path(line)) {
      if (std::ranges::find(open, *inner) == open.end()) append(*inner, open, out);
      mark(number + 1);
      continue;
    }
    out += line + "\n";
  }
  open.pop_back();
}

}  // namespace

std::string text_of(std::string_view path) {
  const std::string& root = environment().kernel_directory;
  if (!root.empty()) {
    for (const char* folder : {"/cl_kernels/", "/src/"}) {
      const std::string file = root + folder + std::string(path);
      FileContent content = read_file(file, kMostSource, Trust::kNamed);
      if (!content.exists) continue;
      if (content.problem.empty()) return std::move(content.bytes);
      throw BuildError("TESSERA_KERNEL_DIR: " + printable(file) +
                       " is not read: " + content.problem);
    }
    throw BuildError("TESSERA_KERNEL_DIR=" + printable(root) + " holds neither cl_kernels/" +
                     std::string(path) + " nor src/" + std::string(path));
  }
  const auto files = embedded_files();
  const auto found = std::ranges::find(files, path, &EmbeddedFile::path);
  if (found == files.end())
    throw BuildError("no kernel source '" + std::string(path) + "' was built in");
  return std::string(found->text);
}

std::vector<std::string> includes_of(const std::string& text) {
  std::vector<std::string> paths;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (auto path = included_path(line)) paths.push_back(*std::move(path));
  }
  return paths;
}

std::string flatten(std::string_view file) {
  std::string out;
  std::vector<std::string> open;
  append(file, open, out);
  return out;
}

std::string module_name(std::string_view file, std::vector<Define> axes) {
  std::ranges::sort(axes, {}, &Define::name);
  std::string name = std::string(file) + "[";
  for (const Define& axis : axes) {
    name += (name.back() == '[' ? "" : ",") + axis.name + "=" + std::to_string(axis.value);
  }
  return name + "]";
}

ModuleLookup find_module(std::string_view name) {
  const auto modules = embedded_modules();
  const auto found = std::ranges::find(modules, name, &EmbeddedModule::name);
  if (found != modules.end()) return {.words = found->words, .why_not = {}};
  const auto skipped = skipped_modules();
  const auto reason = std::ranges::find(skipped, name, &SkippedModule::name);
  if (reason != skipped.end()) {
    return {.words = {},
            .why_not = "the build left " + std::string(name) + " out: " + std::string(reason->why)};
  }
  return {.words = {}, .why_not = "no module " + std::string(name) + " was built in"};
}

}  // namespace tessera::kernel
