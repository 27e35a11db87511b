// SPDX-License-Identifier: Apache-2.0
// Files that other processes write too, and that may hold anything. Nothing here throws but for
// lack of memory.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/system/read_file.hpp"

namespace tessera::selection {

// Readers see the old content or the new one, whole. Returns why it failed, or nothing. `durable`
// waits for the disk.
std::optional<std::string> write_file(const std::filesystem::path& path, std::string_view bytes,
                                      bool durable);

// Temporary files of write_file() that a process left behind when it was killed. Only safe while no
// one writes `path`.
void remove_leftovers(const std::filesystem::path& path);
// The name of the file that a temporary file was to become; empty for any other name.
std::string_view temporary_of(std::string_view name);

// Creates the directory, 0700, with what leads to it. Returns why it may not be used: no directory,
// not ours, or others may write to it.
std::optional<std::string> make_private_directory(const std::filesystem::path& path);

// An advisory lock between processes and threads, on a file of its own that is never removed.
class FileLock {
 public:
  FileLock(const std::filesystem::path& path, std::chrono::milliseconds patience);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  explicit operator bool() const { return held_; }
  const std::string& problem() const { return problem_; }  // why it is not held

 private:
  Descriptor file_;
  bool held_ = false;
  std::string problem_;
};

}  // namespace tessera::selection
