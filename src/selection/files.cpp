// SPDX-License-Identifier: Apache-2.0
#include "selection/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <system_error>
#include <thread>

namespace tessera::selection {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryMark = ".tmp.";
constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;

std::string reason(const char* call, int code) {
  return std::string(call) + ": " + std::generic_category().message(code);
}

template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

Descriptor open_file(const fs::path& path, int flags, mode_t mode = 0) {
  return Descriptor(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
}

FileStamp stamp(const struct stat& info) {
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .size = static_cast<std::uint64_t>(info.st_size),
          .modified_ns = info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec};
}

std::string distrust(const struct stat& info) {
  if (info.st_uid != ::geteuid()) return "it belongs to another user";
  if ((info.st_mode & kOthersMayWrite) != 0) return "others may write to it";
  return {};
}

std::string unique_suffix() {
  static std::atomic<std::uint64_t> counter{0};
  // Process ids repeat between containers that share a directory.
  static const std::uint64_t salt =
      (std::uint64_t{std::random_device{}()} << 32) ^
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  char text[64];
  std::snprintf(text, sizeof text, "%ld.%llx.%llu", static_cast<long>(::getpid()),
                static_cast<unsigned long long>(salt),
                static_cast<unsigned long long>(counter.fetch_add(1)));
  return text;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = retry([&] { return ::write(file, bytes.data(), bytes.size()); });
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void sync_directory(const fs::path& path) {
  const Descriptor directory = open_file(path, O_RDONLY | O_DIRECTORY);
  if (directory) ::fsync(directory.get());
}

std::string read_all(int file, std::uint64_t size, std::string& bytes) {
  bytes.resize(size);
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const auto got =
        retry([&] { return ::read(file, bytes.data() + filled, bytes.size() - filled); });
    if (got < 0) return reason("read", errno);
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
        errno == ELOOP && no_links != 0 ? "it is a symbolic link" : reason("open", errno);
    return content;
  }
  content.exists = true;
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    content.problem = reason("fstat", errno);
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
    content.problem = distrust(info);
  }
  if (content.problem.empty()) content.problem = read_all(file.get(), size, content.bytes);
  return content;
}

std::optional<std::string> write_file(const fs::path& path, std::string_view bytes, bool durable) {
  const fs::path temporary = path.string() + std::string(kTemporaryMark) + unique_suffix();
  Descriptor file =
      open_file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (!file) return reason("open", errno);
  const char* call = "write";
  bool done = write_all(file.get(), bytes);
  if (done && durable) {
    call = "fsync";
    done = retry([&] { return ::fsync(file.get()); }) == 0;
  }
  if (done) {
    call = "close";
    done = file.close();
  }
  if (done) {
    call = "rename";
    done = ::rename(temporary.c_str(), path.c_str()) == 0;
  }
  if (!done) {
    const int code = errno;
    ::unlink(temporary.c_str());
    return reason(call, code);
  }
  if (durable) sync_directory(path.parent_path());
  return std::nullopt;
}

bool is_temporary(const fs::path& path) {
  return path.filename().string().find(kTemporaryMark) != std::string::npos;
}

void remove_leftovers(const fs::path& path) {
  const std::string prefix = path.filename().string() + std::string(kTemporaryMark);
  std::error_code error;
  for (fs::directory_iterator entry(path.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) ::unlink(entry->path().c_str());
  }
}

std::optional<std::string> make_private_directory(const fs::path& path) {
  std::error_code error;
  const fs::path parent = path.parent_path();
  if (!parent.empty() && !fs::exists(parent, error)) {
    if (auto problem = make_private_directory(parent)) return parent.string() + ": " + *problem;
  }
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return reason("mkdir", errno);
  struct stat info {};
  // Whoever owns a link may turn it to anywhere.
  if (::lstat(path.c_str(), &info) != 0) return reason("lstat", errno);
  if (S_ISLNK(info.st_mode) && info.st_uid != ::geteuid())
    return "the link belongs to another user";
  if (::stat(path.c_str(), &info) != 0) return reason("stat", errno);
  if (!S_ISDIR(info.st_mode)) return "it is no directory";
  const std::string problem = distrust(info);
  if (!problem.empty()) return problem;
  return std::nullopt;
}

FileLock::FileLock(const fs::path& path, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + patience;
  file_ = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
  if (!file_) {
    problem_ = reason("open lock file", errno);
    return;
  }
  // Asked again and again: a blocking flock() has no time limit.
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      problem_ = reason("flock", errno);
      return;
    }
    if (Clock::now() >= deadline) {
      problem_ = "another process held the lock for " + std::to_string(patience.count()) + " ms";
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  held_ = true;
}

FileLock::~FileLock() {
  // Closing alone would leave the lock with a child process that was forked meanwhile.
  if (held_) ::flock(file_.get(), LOCK_UN);
}

}  // namespace tessera::selection
