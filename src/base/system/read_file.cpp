// SPDX-License-Identifier: Apache-2.0
#include "base/system/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;

FileStamp stamp(const struct stat& info) {
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .size = static_cast<std::uint64_t>(info.st_size),
          .modified_ns = info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec};
}

std::string read_all(int file, std::uint64_t size, std::string& bytes) {
  bytes.resize(size);
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const auto got =
        retry([&] { return ::read(file, bytes.data() + filled, bytes.size() - filled); });
    if (got < 0) return system_reason("read", errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return {};
}

}  // namespace

bool Descriptor::close() {
  if (value_ < 0) return true;
  return ::close(std::exchange(value_, -1)) == 0;
}

std::optional<FileStamp> stamp_of(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return stamp(info);
}

FileContent read_file(const fs::path& path, std::uint64_t limit, Trust trust) {
  FileContent content;
  // Without O_NONBLOCK a FIFO in place of the file would hold us up.
  const int no_links = trust == Trust::kOurs ? O_NOFOLLOW : 0;
  const Descriptor file = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | no_links);
  if (!file) {
    content.exists = errno != ENOENT;
    content.problem =
        errno == ELOOP && no_links != 0 ? "it is a symbolic link" : system_reason("open", errno);
    return content;
  }
  content.exists = true;
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    content.problem = system_reason("fstat", errno);
    return content;
  }
  content.stamp = stamp(info);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (!S_ISREG(info.st_mode)) {
    content.problem = "it is no regular file";
  } else if (size > limit) {
    content.problem =
        "its " + std::to_string(size) + " bytes are more than " + std::to_string(limit);
  } else if (trust == Trust::kOurs) {
    content.problem = distrust(info.st_uid, info.st_mode);
  }
  if (content.problem.empty()) content.problem = read_all(file.get(), size, content.bytes);
  return content;
}

std::string distrust(unsigned owner, unsigned mode) {
  if (owner != ::geteuid()) return "it belongs to another user";
  if ((mode & kOthersMayWrite) != 0) return "others may write to it";
  return {};
}

std::string system_reason(const char* call, int code) {
  return std::string(call) + ": " + std::generic_category().message(code);
}

Descriptor open_file(const fs::path& path, int flags, unsigned mode) {
  return Descriptor(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
}

}  // namespace tessera
