// SPDX-License-Identifier: Apache-2.0
// tessera cache
#include "selection/cache/cache.hpp"

#include <ctime>
#include <iostream>

#include "base/printable.hpp"
#include "base/system/environment.hpp"
#include "tessera/commands/commands.hpp"
#include "tessera/files/file_io.hpp"
#include "tessera/files/tensor_files.hpp"
#include "tessera/output/report.hpp"
#include "tessera/output/table.hpp"
#include "tessera/output/usage.hpp"

namespace tessera::tool {
namespace {

using Path = std::filesystem::path;

struct CacheArguments {
  std::string directory, file;
  bool verbose = false, json = false;
};

enum class Missing { kCreate, kLeave };

// Where --dir names no directory that exists, that is a mistake. The usual one appears with the
// first thing that is kept.
Path cache_directory(const CacheArguments& arguments, Missing missing = Missing::kLeave) {
  const std::optional<std::string> option =
      arguments.directory.empty() ? std::nullopt : std::optional(arguments.directory);
  const selection::CacheDirectory directory = missing == Missing::kCreate
                                                  ? selection::open_cache_directory(option, true)
                                                  : selection::find_cache_directory(option, true);
  if (directory.path.empty()) throw CacheError("no persistent cache: " + directory.why_not);
  if (option && !std::filesystem::exists(directory.path))
    throw CacheError("the directory " + quote(directory.path.string()) + " does not exist");
  return directory.path;
}

std::string shown(const Path& path) { return printable(path.string()); }

std::string limit_text() {
  const std::uint64_t limit = environment().cache_limit;
  return limit == ~std::uint64_t{0} ? "without a limit" : "of at most " + bytes_text(limit);
}

std::string hits_text(std::uint64_t hits) {
  return std::to_string(hits) + (hits == 1 ? " hit" : " hits");
}

std::string used_text(const selection::CacheFile& file) {
  return utc_text(static_cast<std::time_t>(file.last_use_ns / 1'000'000'000));
}

Json entries_json(const Path& file) {
  Json json = Json::array();
  for (const auto& [key, entry] : selection::read_choices(file)) {
    json.push_back({{"key", key},
                    {"variant", entry.variant},
                    {"config", entry.config.to_string()},
                    {"origin", to_string(entry.origin)},
                    {"milliseconds", entry.milliseconds},
                    {"error_over_bound", entry.error_over_bound},
                    {"date", entry.date}});
  }
  return json;
}

void print_entries(const Path& file) {
  for (const auto& [key, entry] : selection::read_choices(file)) {
    std::cout << "    " << printable(key) << "\n      " << printable(entry.variant) << '{'
              << printable(entry.config.to_string()) << "} " << significant(entry.milliseconds)
              << " ms, " << to_string(entry.origin) << ' ' << printable(entry.date) << '\n';
  }
}

int list(const CacheArguments& arguments) {
  const Path directory = cache_directory(arguments);
  const std::vector<selection::CacheFile> files = selection::inspect(directory);
  std::uint64_t total = 0;
  for (const selection::CacheFile& file : files) total += file.bytes;
  if (arguments.json) {
    Json json = Json::array();
    for (const selection::CacheFile& file : files) {
      json.push_back({{"file", file.path.string()},
                      {"kind", file.kind},
                      {"device", file.device},
                      {"entries", file.entries},
                      {"bytes", file.bytes},
                      {"last_use", used_text(file)},
                      {"problem", file.problem}});
      if (file.kind == "program") json.back()["hits"] = file.hits;
      if (file.kind == "choices" && file.problem.empty()) {
        json.back()["choices"] = entries_json(file.path);
      }
    }
    std::cout << dump({{"directory", directory.string()},
                       {"bytes", total},
                       {"limit", environment().cache_limit},
                       {"files", json}})
              << '\n';
    return 0;
  }
  std::cout << shown(directory) << '\n';
  std::size_t programs = 0;
  std::uint64_t program_bytes = 0, program_hits = 0;
  for (const selection::CacheFile& file : files) {
    if (file.kind == "program" && file.problem.empty() && !arguments.verbose) {
      ++programs;
      program_bytes += file.bytes;
      program_hits += file.hits;
      continue;
    }
    std::cout << "  " << shown(file.path.lexically_relative(directory)) << ": " << file.kind << ", "
              << bytes_text(file.bytes);
    if (file.kind == "choices") std::cout << ", " << file.entries << " configurations";
    if (file.kind == "program") {
      std::cout << ", " << hits_text(file.hits) << ", last used " << used_text(file);
    }
    if (!file.device.empty()) std::cout << ", " << printable(file.device);
    std::cout << (file.problem.empty() ? "" : ": NOT USED: " + printable(file.problem)) << '\n';
    if (arguments.verbose && file.kind == "choices" && file.problem.empty()) {
      print_entries(file.path);
    }
  }
  if (programs > 0) {
    std::cout << "  " << programs << " compiled programs, " << bytes_text(program_bytes) << ", "
              << hits_text(program_hits) << '\n';
  }
  if (files.empty()) {
    std::cout << "  empty" << (std::filesystem::exists(directory) ? "" : ": not created yet")
              << '\n';
  } else {
    std::cout << "  together " << bytes_text(total) << ' ' << limit_text() << '\n';
  }
  return 0;
}

int verify(const CacheArguments& arguments) {
  const Path directory = cache_directory(arguments);
  const std::vector<selection::CacheFile> files = selection::inspect(directory);
  std::size_t damaged = 0;
  Json json = Json::array();
  for (const selection::CacheFile& file : files) {
    if (file.problem.empty()) continue;
    ++damaged;
    json.push_back({{"file", file.path.string()}, {"problem", file.problem}});
    if (!arguments.json) std::cout << shown(file.path) << ": " << printable(file.problem) << '\n';
  }
  if (arguments.json) {
    std::cout << dump({{"directory", directory.string()},
                       {"sound", files.size() - damaged},
                       {"damaged", json}})
              << '\n';
  } else {
    std::cout << shown(directory) << ": " << files.size() - damaged << " files are sound, "
              << damaged << " are not" << (damaged > 0 ? " and count as missing" : "") << '\n';
  }
  return damaged > 0 ? 1 : 0;
}

int export_to(const CacheArguments& arguments) {
  const Path directory = cache_directory(arguments);
  selection::export_choices(directory, arguments.file);
  std::cout << "configurations of " << shown(directory) << " -> " << shown(arguments.file) << '\n';
  return 0;
}

int import_from(const CacheArguments& arguments) {
  const InputFile probe(arguments.file);  // names what is wrong with the file itself
  const Path directory = cache_directory(arguments, Missing::kCreate);
  const std::size_t count = selection::import_choices(directory, arguments.file);
  std::cout << count << " configurations -> " << shown(directory) << '\n';
  return 0;
}

int clear(const CacheArguments& arguments) {
  const Path directory = cache_directory(arguments);
  const selection::Cleared cleared = selection::clear(directory);
  std::cout << cleared.removed << " files removed from " << shown(directory) << '\n';
  for (const selection::CacheFile& file : cleared.left) {
    std::cout << "left alone: " << shown(file.path) << ": " << file.problem << '\n';
  }
  return 0;
}

}  // namespace

Command add_cache(App& tool) {
  App* app = tool.add_subcommand("cache", "What is remembered between runs.");
  const auto arguments = std::make_shared<CacheArguments>();
  CacheArguments& a = *arguments;
  app->require_subcommand();
  app->add_option("--dir", a.directory,
                  "Directory (default: TESSERA_CACHE_DIR, then $XDG_CACHE_HOME/tessera)");
  struct Action {
    App* app;
    int (*run)(const CacheArguments&);
  };
  std::vector<Action> actions;
  const auto add = [&](const std::string& name, const char* what, int (*run)(const CacheArguments&),
                       const char* file = "") {
    App* action = app->add_subcommand(name, what);
    action->fallthrough();  // --dir may follow the action
    action->footer("Example:\n  tessera cache " + name + file);
    actions.push_back({action, run});
    return action;
  };
  App* list_app = add("list", "The files and what they hold.", list);
  list_app->add_flag("-v,--verbose", a.verbose, "Every configuration and program");
  list_app->add_flag("--json", a.json, "Print JSON");
  App* verify_app = add("verify", "Check every file; exit code 1 if one is damaged.", verify);
  verify_app->add_flag("--json", a.json, "Print JSON");
  add("export", "Write the tuned configurations of all devices to one file.", export_to,
      " tuned.json")
      ->add_option("file", a.file, "Target")
      ->required();
  add("import", "Merge the configurations of an exported file.", import_from, " tuned.json")
      ->add_option("file", a.file, "Source")
      ->required();
  add("clear", "Remove the files that Tessera wrote to the cache.", clear);
  app->footer(
      "Examples:\n"
      "  tessera cache list -v\n"
      "  tessera cache verify\n"
      "  tessera cache export tuned.json && tessera cache --dir /tmp/other import tuned.json");
  return {app, [arguments, actions] {
            for (const Action& action : actions) {
              if (action.app->parsed()) return action.run(*arguments);
            }
            throw UsageError("cache needs an action");
          }};
}

}  // namespace tessera::tool
