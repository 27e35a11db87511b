// SPDX-License-Identifier: Apache-2.0
// Whole reads and whole writes of regular files, with one sentence for each way to fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace tessera::tool {

// An open regular file. Every failure is a FileError that names the file.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& file);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::uint64_t size() const { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> target) const;
  [[noreturn]] void fail(const std::string& what) const;  // "FILE: what"

 private:
  std::string name_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

// Writes beside the target and renames, so that a reader sees the old file or the new one. What is
// not a regular file
// (/dev/null, a pipe) is written in place.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& file);
  ~OutputFile();  // without commit(): leaves the target as it was
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty = written in place
  int descriptor_ = -1;
};

void write_file(const std::filesystem::path& file, std::string_view text);
std::string read_text(const std::filesystem::path& file, std::uint64_t limit);

}  // namespace tessera::tool
