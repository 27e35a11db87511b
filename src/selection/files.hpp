// SPDX-License-Identifier: Apache-2.0
// Files that other processes write too, and that may hold anything. Nothing here throws but for
// lack of memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::selection {

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }
  bool close();  // false when the system reports a late error

 private:
  int value_;
};

// Tells whether a path still leads to the same version of a file.
struct FileStamp {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t modified_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
std::optional<FileStamp> stamp_of(const std::filesystem::path& path);  // nothing = no such file

struct FileContent {
  bool exists = false;
  std::string bytes{};
  std::string problem{};  // empty = read; else why nothing was read
  FileStamp stamp{};
};

enum class Trust {
  kOurs,   // a regular file, no link, that we own and that nobody else may write
  kNamed,  // any regular file: the user named it
};
FileContent read_file(const std::filesystem::path& path, std::uint64_t limit, Trust trust);

// Readers see the old content or the new one, whole. Returns why it failed, or nothing. `durable`
// waits for the disk.
std::optional<std::string> write_file(const std::filesystem::path& path, std::string_view bytes,
                                      bool durable);

// Temporary files of write_file() that a process left behind when it was killed. Only safe while no
// one writes `path`.
void remove_leftovers(const std::filesystem::path& path);
bool is_temporary(const std::filesystem::path& path);

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
