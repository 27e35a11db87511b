// SPDX-License-Identifier: Apache-2.0
#include "tessera/files/file_io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "tessera/files/tensor_files.hpp"

namespace tessera::tool {
namespace {

constexpr std::size_t kLargestTransfer = std::size_t{1}
                                         << 30U;  // Linux moves at most 2 GiB at once

// A sparse file may claim terabytes; what memory can't hold is refused before it is asked for.
std::uint64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return std::uint64_t{1} << 40U;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

std::string reason() { return std::generic_category().message(errno); }

}  // namespace

InputFile::InputFile(const std::filesystem::path& file) : name_(quote(file.string())) {
  // O_NONBLOCK: a FIFO without a writer must not hang us.
  descriptor_ = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail("cannot be opened: " + reason());
  struct stat status {};
  std::string problem;
  if (fstat(descriptor_, &status) != 0) {
    problem = "cannot be examined: " + reason();
  } else if (!S_ISREG(status.st_mode)) {
    problem = S_ISDIR(status.st_mode) ? "is a directory" : "is not a regular file";
  } else {
    size_ = static_cast<std::uint64_t>(status.st_size);
    if (size_ > memory_bytes()) {
      problem = "is " + std::to_string(size_) + " bytes, more than this machine's memory of " +
                std::to_string(memory_bytes());
    }
  }
  if (!problem.empty()) {
    close(descriptor_);
    descriptor_ = -1;
    fail(problem);
  }
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> target) const {
  while (!target.empty()) {
    const ssize_t got = pread(descriptor_, target.data(), std::min(target.size(), kLargestTransfer),
                              static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot be read: " + reason());
    if (got == 0) fail("ends too early");
    offset += static_cast<std::uint64_t>(got);
    target = target.subspan(static_cast<std::size_t>(got));
  }
}

void InputFile::fail(const std::string& what) const { throw FileError(name_ + " " + what); }

OutputFile::OutputFile(const std::filesystem::path& file) : target_(file) {
  struct stat status {};
  const bool exists = stat(file.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    throw FileError(quote(file.string()) + " is a directory");
  }
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    std::error_code ignored;  // through a symbolic link, replace what it points at
    if (exists) target_ = std::filesystem::canonical(file, ignored);
    if (target_.empty()) target_ = file;
    std::string pattern = target_.string() + ".XXXXXX";
    descriptor_ = mkostemp(pattern.data(), O_CLOEXEC);
    if (descriptor_ >= 0) {
      temporary_ = pattern;
      const mode_t mask = umask(0);
      umask(mask);
      if (fchmod(descriptor_, exists ? status.st_mode & 0777U : 0666U & ~mask) != 0) {
        // The content counts; a file system without modes is fine.
      }
    }
  }
  if (descriptor_ < 0) fail("cannot be created");
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put =
        ::write(descriptor_, bytes.data(), std::min(bytes.size(), kLargestTransfer));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void OutputFile::commit() {
  const int closed = close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail("cannot be written");
  if (temporary_.empty()) return;
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be replaced");
  temporary_.clear();
}

void OutputFile::fail(const char* what) const {
  throw FileError(quote(target_.string()) + " " + what + ": " + reason());
}

void write_file(const std::filesystem::path& file, std::string_view text) {
  OutputFile output(file);
  output.write(text);
  output.commit();
}

std::string read_text(const std::filesystem::path& file, std::uint64_t limit) {
  const InputFile input(file);
  if (input.size() > limit) {
    input.fail("is " + std::to_string(input.size()) + " bytes; at most " + std::to_string(limit) +
               " are read");
  }
  std::string text(static_cast<std::size_t>(input.size()), '\0');
  input.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace tessera::tool
