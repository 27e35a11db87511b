// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace tessera::tool {

// A directory that lives as long as the test.
class TemporaryFiles : public ::testing::Test {
 protected:
  TemporaryFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tessera_test.XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
    directory_ = pattern;
  }
  ~TemporaryFiles() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::filesystem::path path(const std::string& name) const { return directory_ / name; }

  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::ofstream file(path(name), std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    return path(name);
  }

  static std::string content(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace tessera::tool
