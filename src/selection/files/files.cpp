// SPDX-License-Identifier: Apache-2.0
#include "selection/files/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

}  // namespace

std::optional<std::string> write_file(const fs::path& path, std::string_view bytes, bool durable) {
  const fs::path temporary = path.string() + std::string(kTemporaryMark) + unique_suffix();
  Descriptor file =
      open_file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (!file) return system_reason("open", errno);
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
    return system_reason(call, code);
  }
  if (durable) sync_directory(path.parent_path());
  return std::nullopt;
}

std::string_view temporary_of(std::string_view name) {
  const std::size_t mark = name.rfind(kTemporaryMark);
  if (mark == std::string_view::npos || mark == 0) return {};
  // As unique_suffix() writes it.
  std::string_view rest = name.substr(mark + kTemporaryMark.size());
  for (const char* digits : {"0123456789", "0123456789abcdef", "0123456789"}) {
    const std::size_t end = std::min(rest.find_first_not_of(digits), rest.size());
    if (end == 0) return {};
    rest.remove_prefix(end);
    if (rest.starts_with('.')) rest.remove_prefix(1);
  }
  return rest.empty() ? name.substr(0, mark) : std::string_view();
}

void remove_leftovers(const fs::path& path) {
  const std::string name = path.filename().string();
  std::error_code error;
  for (fs::directory_iterator entry(path.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (temporary_of(entry->path().filename().string()) == name) ::unlink(entry->path().c_str());
  }
}

std::optional<std::string> make_private_directory(const fs::path& path) {
  std::error_code error;
  const fs::path parent = path.parent_path();
  if (!parent.empty() && !fs::exists(parent, error)) {
    if (auto problem = make_private_directory(parent)) return parent.string() + ": " + *problem;
  }
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return system_reason("mkdir", errno);
  struct stat info {};
  // Whoever owns a link may turn it to anywhere.
  if (::lstat(path.c_str(), &info) != 0) return system_reason("lstat", errno);
  if (S_ISLNK(info.st_mode) && info.st_uid != ::geteuid())
    return "the link belongs to another user";
  if (::stat(path.c_str(), &info) != 0) return system_reason("stat", errno);
  if (!S_ISDIR(info.st_mode)) return "it is no directory";
  const std::string problem = distrust(info.st_uid, info.st_mode);
  if (!problem.empty()) return problem;
  return std::nullopt;
}

FileLock::FileLock(const fs::path& path, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + patience;
  file_ = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
  if (!file_) {
    problem_ = system_reason("open lock file", errno);
    return;
  }
  // Asked again and again: a blocking flock() has no time limit.
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      problem_ = system_reason("flock", errno);
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
