// SPDX-License-Identifier: Apache-2.0
// tessera cache
#include "selection/cache.hpp"

#include <iostream>

#include "commands.hpp"
#include "file_io.hpp"
#include "report.hpp"
#include "table.hpp"
#include "tensor_files.hpp"
#include "usage.hpp"

namespace tessera::tool {
namespace {

using Path = std::filesystem::path;

struct Arguments {
  std::string directory, file;
  bool verbose = false, json = false;
};

Path cache_directory(const Arguments& arguments) {
  const std::optional<std::string> option =
      arguments.directory.empty() ? std::nullopt : std::optional(arguments.directory);
  const selection::CacheDirectory directory = selection::open_cache_directory(option, true);
  if (directory.path.empty()) throw CacheError("no persistent cache: " + directory.why_not);
  return directory.path;
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
    std::cout << "    " << key << "\n      " << entry.variant << '{' << entry.config.to_string()
              << "} " << significant(entry.milliseconds) << " ms, " << to_string(entry.origin)
              << ' ' << entry.date << '\n';
  }
}

int list(const Arguments& arguments) {
  const Path directory = cache_directory(arguments);
  const std::vector<selection::CacheFile> files = selection::inspect(directory);
  if (arguments.json) {
    Json json = Json::array();
    for (const selection::CacheFile& file : files) {
      json.push_back({{"file", file.path.string()},
                      {"kind", file.kind},
                      {"device", file.device},
                      {"entries", file.entries},
                      {"bytes", file.bytes},
                      {"problem", file.problem}});
      if (file.kind == "choices" && file.problem.empty()) {
        json.back()["choices"] = entries_json(file.path);
      }
    }
    std::cout << dump({{"directory", directory.string()}, {"files", json}}) << '\n';
    return 0;
  }
  std::cout << directory.string() << '\n';
  std::size_t programs = 0;
  std::uint64_t program_bytes = 0;
  for (const selection::CacheFile& file : files) {
    if (file.kind == "program" && file.problem.empty() && !arguments.verbose) {
      ++programs;
      program_bytes += file.bytes;
      continue;
    }
    std::cout << "  " << file.path.lexically_relative(directory).string() << ": " << file.kind
              << ", " << bytes_text(file.bytes);
    if (file.kind == "choices") std::cout << ", " << file.entries << " configurations";
    if (!file.device.empty()) std::cout << ", " << file.device;
    std::cout << (file.problem.empty() ? "" : ": NOT USED: " + file.problem) << '\n';
    if (arguments.verbose && file.kind == "choices" && file.problem.empty()) {
      print_entries(file.path);
    }
  }
  if (programs > 0) {
    std::cout << "  " << programs << " compiled programs, " << bytes_text(program_bytes) << '\n';
  }
  if (files.empty()) std::cout << "  empty\n";
  return 0;
}

int verify(const Arguments& arguments) {
  const Path directory = cache_directory(arguments);
  const std::vector<selection::CacheFile> files = selection::inspect(directory);
  std::size_t damaged = 0;
  Json json = Json::array();
  for (const selection::CacheFile& file : files) {
    if (file.problem.empty()) continue;
    ++damaged;
    json.push_back({{"file", file.path.string()}, {"problem", file.problem}});
    if (!arguments.json) std::cout << file.path.string() << ": " << file.problem << '\n';
  }
  if (arguments.json) {
    std::cout << dump({{"directory", directory.string()},
                       {"sound", files.size() - damaged},
                       {"damaged", json}})
              << '\n';
  } else {
    std::cout << directory.string() << ": " << files.size() - damaged << " files are sound, "
              << damaged << " are not" << (damaged > 0 ? " and count as missing" : "") << '\n';
  }
  return damaged > 0 ? 1 : 0;
}

int export_to(const Arguments& arguments) {
  const Path directory = cache_directory(arguments);
  selection::export_choices(directory, arguments.file);
  std::cout << "configurations of " << directory.string() << " -> " << arguments.file << '\n';
  return 0;
}

int import_from(const Arguments& arguments) {
  const InputFile probe(arguments.file);  // names what is wrong with the file itself
  const Path directory = cache_directory(arguments);
  const std::size_t count = selection::import_choices(directory, arguments.file);
  std::cout << count << " configurations -> " << directory.string() << '\n';
  return 0;
}

int clear(const Arguments& arguments) {
  const Path directory = cache_directory(arguments);
  std::cout << selection::clear(directory) << " files removed from " << directory.string() << '\n';
  return 0;
}

}  // namespace

Command add_cache(App& tool) {
  App* app = tool.add_subcommand("cache", "What is remembered between runs.");
  const auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  app->require_subcommand();
  app->add_option("--dir", a.directory,
                  "Directory (default: TESSERA_CACHE_DIR, then $XDG_CACHE_HOME/tessera)");
  struct Action {
    App* app;
    int (*run)(const Arguments&);
  };
  std::vector<Action> actions;
  const auto add = [&](const std::string& name, const char* what, int (*run)(const Arguments&),
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
  add("clear", "Remove all files of the cache.", clear);
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
