// SPDX-License-Identifier: Apache-2.0
#include "base/system/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "tessera/error.hpp"

namespace tessera {
namespace {

using ::testing::HasSubstr;

std::map<std::string, std::string>& variables() {
  static std::map<std::string, std::string> all;
  return all;
}
std::set<std::string>& asked() {
  static std::set<std::string> names;
  return names;
}

const char* get(const char* name) {
  asked().insert(name);
  const auto found = variables().find(name);
  return found == variables().end() ? nullptr : found->second.c_str();
}

Environment read(std::map<std::string, std::string> with) {
  variables() = std::move(with);
  return read_environment(get);
}

TEST(EnvironmentTable, Defaults) {
  const Environment none = read({});
  EXPECT_EQ(none.device, "");
  EXPECT_EQ(none.cache_directory, std::nullopt);
  EXPECT_EQ(none.cache_limit, std::uint64_t{1} << 30);
  EXPECT_FALSE(none.autotune);
  EXPECT_EQ(none.precision, Precision::kDefault);
  EXPECT_EQ(none.log, LogLevel::kWarning);
  EXPECT_EQ(none.kernel_directory, "");
  EXPECT_EQ(none.disabled, Feature::kNone);
  EXPECT_TRUE(none.quirks);
  EXPECT_EQ(none.home, "");
  EXPECT_EQ(none.xdg_cache_home, "");
}

TEST(EnvironmentTable, GoodValues) {
  EXPECT_EQ(read({{"TESSERA_DEVICE", "vulkan:llvmpipe"}}).device, "vulkan:llvmpipe");
  EXPECT_EQ(read({{"TESSERA_CACHE_DIR", "/x y"}}).cache_directory, "/x y");
  EXPECT_EQ(read({{"TESSERA_CACHE_DIR", ""}}).cache_directory, "") << "set and empty: no cache";
  const std::pair<const char*, std::uint64_t> limits[] = {{"0", 0},
                                                          {"1048576", 1 << 20},
                                                          {"64K", 1 << 16},
                                                          {"512M", 1 << 29},
                                                          {"2G", 1LL << 31},
                                                          {"1T", 1LL << 40},
                                                          {"off", ~std::uint64_t{0}},
                                                          {"", std::uint64_t{1} << 30}};
  for (const auto& [text, bytes] : limits)
    EXPECT_EQ(read({{"TESSERA_CACHE_LIMIT", text}}).cache_limit, bytes) << text;
  EXPECT_TRUE(read({{"TESSERA_AUTOTUNE_POLICY", "autotune"}}).autotune);
  EXPECT_FALSE(read({{"TESSERA_AUTOTUNE_POLICY", "heuristics"}}).autotune);
  EXPECT_EQ(read({{"TESSERA_PRECISION", "highest"}}).precision, Precision::kHighest);
  EXPECT_EQ(read({{"TESSERA_PRECISION", "high"}}).precision, Precision::kHigh);
  EXPECT_EQ(read({{"TESSERA_PRECISION", ""}}).precision, Precision::kDefault);
  const std::pair<const char*, LogLevel> levels[] = {
      {"off", LogLevel::kOff},   {"error", LogLevel::kError}, {"warning", LogLevel::kWarning},
      {"info", LogLevel::kInfo}, {"debug", LogLevel::kDebug}, {"", LogLevel::kWarning}};
  for (const auto& [text, level] : levels)
    EXPECT_EQ(read({{"TESSERA_LOG", text}}).log, level) << text;
  EXPECT_EQ(read({{"TESSERA_KERNEL_DIR", "."}}).kernel_directory, ".");
  EXPECT_EQ(read({{"TESSERA_DISABLE", "fp16"}}).disabled, Feature::kFp16Arithmetic);
  EXPECT_EQ(read({{"TESSERA_DISABLE", "coopmat,subgroups,coopmat"}}).disabled,
            Feature::kCooperativeMatrix | Feature::kSubgroupArithmetic);
  EXPECT_EQ(read({{"TESSERA_DISABLE", ""}}).disabled, Feature::kNone);
  EXPECT_FALSE(read({{"TESSERA_QUIRKS", "off"}}).quirks);
  EXPECT_TRUE(read({{"TESSERA_QUIRKS", "on"}}).quirks);
  EXPECT_EQ(read({{"HOME", "/root"}}).home, "/root");
  EXPECT_EQ(read({{"XDG_CACHE_HOME", "/c"}}).xdg_cache_home, "/c");
  for (const FeatureName& known : feature_names()) {
    EXPECT_EQ(read({{"TESSERA_DISABLE", std::string(known.name)}}).disabled, known.feature);
  }
}

TEST(EnvironmentTable, MalformedValuesNameTheVariable) {
  const std::pair<const char*, const char*> rows[] = {{"TESSERA_AUTOTUNE_POLICY", "on"},
                                                      {"TESSERA_AUTOTUNE_POLICY", "Autotune"},
                                                      {"TESSERA_AUTOTUNE_POLICY", " autotune"},
                                                      {"TESSERA_PRECISION", "best"},
                                                      {"TESSERA_LOG", "verbose"},
                                                      {"TESSERA_CACHE_LIMIT", "-1"},
                                                      {"TESSERA_CACHE_LIMIT", "1.5G"},
                                                      {"TESSERA_CACHE_LIMIT", "1GB"},
                                                      {"TESSERA_CACHE_LIMIT", "G"},
                                                      {"TESSERA_CACHE_LIMIT", "17000000T"},
                                                      {"TESSERA_CACHE_LIMIT", "lots"},
                                                      {"TESSERA_LOG", "3"},
                                                      {"TESSERA_QUIRKS", "no"},
                                                      {"TESSERA_DISABLE", "fp17"},
                                                      {"TESSERA_DISABLE", "fp16,"},
                                                      {"TESSERA_DISABLE", ","},
                                                      {"TESSERA_DISABLE", "fp16, coopmat"},
                                                      {"TESSERA_DISABLE", "FP16"}};
  for (const auto& [name, value] : rows) {
    try {
      read({{name, value}});
      ADD_FAILURE() << name << "='" << value << "' was accepted";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(name));
      EXPECT_THAT(error.what(), HasSubstr("'" + std::string(value) + "'"));
    }
  }
}

// docs/environment.md is the users' table.
TEST(EnvironmentTable, EveryVariableIsDocumented) {
  asked().clear();
  read({});
  EXPECT_EQ(asked().size(), 11U);
  const auto path = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() /
                    "docs" / "environment.md";
  std::ifstream stream(path);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  for (const std::string& name : asked()) EXPECT_THAT(text, HasSubstr("`" + name + "`"));
  for (const FeatureName& known : feature_names()) {
    EXPECT_THAT(text, HasSubstr("`" + std::string(known.name) + "`"));
  }
}

}  // namespace
}  // namespace tessera
