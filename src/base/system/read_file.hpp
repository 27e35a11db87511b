// SPDX-License-Identifier: Apache-2.0
// Reading files that may hold anything and be anything. Nothing here throws but for lack of memory.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace tessera {

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
// Never waits: what is no regular file, such as a FIFO, is not read.
FileContent read_file(const std::filesystem::path& path, std::uint64_t limit, Trust trust);

// Why a file or directory with this owner and mode is not trusted; empty = it is.
std::string distrust(unsigned owner, unsigned mode);
// "open: No such file or directory"
std::string system_reason(const char* call, int code);
// Calls again what a signal interrupted.
template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}
Descriptor open_file(const std::filesystem::path& path, int flags, unsigned mode = 0);

}  // namespace tessera
