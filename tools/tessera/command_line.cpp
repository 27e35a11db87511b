// SPDX-License-Identifier: Apache-2.0
#include "tessera/command_line.hpp"

#include <CLI/CLI.hpp>

#include "tessera/files/tensor_files.hpp"
#include "tessera/output/report.hpp"
#include "tessera/output/usage.hpp"

namespace tessera::tool {

Option* Option::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
}

std::string why_no_seconds(const std::string& text, double least, double most) {
  double value = 0;
  // Written so that NaN, which is neither, is refused.
  if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return {};
  return quote(text) + " is no number of seconds from " + significant(least) + " to " +
         fixed(most, 0);
}

Option* Option::seconds_between(double least, double most) {
  option_->check(CLI::Validator(
      [least, most](const std::string& text) { return why_no_seconds(text, least, most); },
      significant(least) + " to " + fixed(most, 0)));
  return this;
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Option* Option::allow_extra_args(bool allow) {
  option_->allow_extra_args(allow);
  return this;
}

Option* Option::required() {
  option_->required();
  return this;
}

struct App::State {
  std::unique_ptr<CLI::App> root;  // of the tool
  CLI::App* app;
  std::vector<std::unique_ptr<App>> commands{};
  std::vector<std::unique_ptr<Option>> options{};

  template <class Value>
  Option* add(const std::string& name, Value& value, const std::string& description) {
    CLI::Option* option = app->add_option(name, value, description);
    return options.emplace_back(std::make_unique<Option>(option)).get();
  }
};

App::App(const std::string& description, const std::string& name)
    : state_(std::make_unique<State>(
          State{.root = std::make_unique<CLI::App>(description, name), .app = nullptr})) {
  state_->app = state_->root.get();
}

App::App(std::unique_ptr<State> state) : state_(std::move(state)) {}

App::~App() = default;

App* App::add_subcommand(const std::string& name, const std::string& description) {
  CLI::App* command = state_->app->add_subcommand(name, description);
  auto state = std::make_unique<State>(State{.root = nullptr, .app = command});
  return state_->commands.emplace_back(new App(std::move(state))).get();
}

Option* App::add_option(const std::string& name, std::string& value,
                        const std::string& description) {
  return state_->add(name, value, description);
}

Option* App::add_option(const std::string& name, double& value, const std::string& description) {
  return state_->add(name, value, description);
}

Option* App::add_option(const std::string& name, int& value, const std::string& description) {
  return state_->add(name, value, description);
}

Option* App::add_option(const std::string& name, std::vector<std::string>& values,
                        const std::string& description) {
  return state_->add(name, values, description);
}

void App::add_flag(const std::string& names, bool& value, const std::string& description) {
  state_->app->add_flag(names, value, description);
}

void App::set_version_flag(const std::string& name, const std::string& text) {
  state_->app->set_version_flag(name, text);
}

void App::require_subcommand() { state_->app->require_subcommand(1); }

void App::fallthrough() { state_->app->fallthrough(); }

void App::footer(const std::string& text) { state_->app->footer(text); }

const std::string& App::name() const { return state_->app->get_name(); }

bool App::parsed() const { return state_->app->parsed(); }

bool App::parse(int argc, char** argv) {
  try {
    state_->app->parse(argc, argv);
    return true;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      state_->app->exit(error);
      return false;
    }
    std::string scope;
    for (const CLI::App* app = state_->app; !app->get_subcommands().empty();) {
      app = app->get_subcommands().front();
      scope += app->get_name() + ' ';
    }
    throw UsageError(std::string(error.what()) + " (see 'tessera " + scope + "--help')");
  }
}

}  // namespace tessera::tool
