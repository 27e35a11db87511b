// SPDX-License-Identifier: Apache-2.0
// The command line of the tool and of its commands. CLI11 parses it, behind this header: its own
// take seconds to compile in every file that sees them.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class Option;
}

namespace tessera::tool {

// Why a text is no number of seconds in a range, or nothing. What is infinite or no number is none.
std::string why_no_seconds(const std::string& text, double least, double most);

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option* type_name(const std::string& name);
  Option* seconds_between(double least, double most);  // finite, and nothing below or above
  Option* capture_default_str();                       // help shows the value that is there now
  Option* allow_extra_args(bool allow);                // of a list: several words after one name
  Option* required();

 private:
  CLI::Option* option_;
};

// The tool, or a command of it. Options and commands that it gives out live as long as it does.
class App {
 public:
  App(const std::string& description, const std::string& name);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  App* add_subcommand(const std::string& name, const std::string& description);
  Option* add_option(const std::string& name, std::string& value, const std::string& description);
  Option* add_option(const std::string& name, double& value, const std::string& description);
  Option* add_option(const std::string& name, int& value, const std::string& description);
  Option* add_option(const std::string& name, std::vector<std::string>& values,
                     const std::string& description);
  void add_flag(const std::string& names, bool& value, const std::string& description);
  void set_version_flag(const std::string& name, const std::string& text);
  void require_subcommand();
  void fallthrough();  // options of the command above may follow this one
  void footer(const std::string& text);

  const std::string& name() const;
  bool parsed() const;
  // False: --help or --version was asked for, and is printed. Throws UsageError.
  bool parse(int argc, char** argv);

 private:
  struct State;
  explicit App(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tessera::tool
