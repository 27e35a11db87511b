// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/hash.hpp"
#include "base/system/log.hpp"
#include "selection/cache/cache.hpp"
#include "selection/files/blob_file.hpp"
#include "selection/files/cache_files.hpp"
#include "selection/files/files.hpp"

namespace tessera::selection {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20;
constexpr std::size_t kMaxKeyBytes = 64 << 10;
constexpr std::chrono::hours kAbandoned{1};  // no write takes this long

// In the byte order of the machine: a file from another kind of machine has another format number.
struct Header {
  char magic[8] = {'t', 'e', 's', 's', 'p', 'r', 'g', '\n'};
  std::uint32_t format = 2;
  std::uint32_t key_bytes = 0;
  std::uint64_t blob_bytes = 0;
  std::uint64_t hits = 0;  // times that it was loaded; changed in place
  char digest[32] = {};    // of this header with no hits and an empty digest, the key and the blob
};
static_assert(sizeof(Header) == 64 && std::is_trivially_copyable_v<Header>);
static_assert(std::string_view(Header{}.magic, sizeof Header::magic) == kProgramMagic);

std::string_view bytes_of(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

std::string with_header(std::string_view key, std::string_view blob) {
  Header header;
  header.key_bytes = static_cast<std::uint32_t>(key.size());
  header.blob_bytes = blob.size();
  std::string file;
  file.reserve(sizeof header + key.size() + blob.size());
  file.append(bytes_of(header)).append(key).append(blob);
  const std::string digest = hash128(file);
  std::memcpy(header.digest, digest.data(), sizeof header.digest);
  file.replace(0, sizeof header, bytes_of(header));
  return file;
}

// Where the blob begins, or a reason not to give it out. An empty key stands for any.
std::size_t check_blob(std::string& file, std::string_view key, std::string& problem,
                       Header& header) {
  const Header expected;
  if (file.size() < sizeof header) {
    problem = "it is too short";
    return 0;
  }
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0) {
    problem = "it is no program of Tessera";
  } else if (header.format != expected.format) {
    problem = "it has another format";
  } else if (header.key_bytes > kMaxKeyBytes || header.blob_bytes > kMaxFileBytes ||
             sizeof header + header.key_bytes + header.blob_bytes != file.size()) {
    problem = "its size is not what its header says";
  }
  if (!problem.empty()) return 0;
  std::memset(file.data() + offsetof(Header, digest), 0, sizeof header.digest);
  std::memset(file.data() + offsetof(Header, hits), 0, sizeof header.hits);
  if (hash128(file) != std::string_view(header.digest, sizeof header.digest)) {
    problem = "it is damaged";
    return 0;
  }
  if (!key.empty() && std::string_view(file).substr(sizeof header, header.key_bytes) != key) {
    problem = "it belongs to another key";
    return 0;
  }
  return sizeof header + header.key_bytes;
}

// A process that is killed while it writes leaves its temporary file. Others may be writing right
// now, so only old ones are removed.
void sweep(const fs::path& directory) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  for (const NamedFile& file : named_files(directory)) {
    const std::chrono::nanoseconds written(file.last_use_ns);
    if (file.kind == CacheFileKind::kTemporary && now - written > kAbandoned) remove_own(file);
  }
}

// Best effort: of two processes at the same moment one may be lost. The file's time of change is
// then that of its last use.
void count_hit(const fs::path& file, std::uint64_t hits) {
  const Descriptor opened = open_file(file, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (!opened) return;
  ++hits;
  if (::pwrite(opened.get(), &hits, sizeof hits, offsetof(Header, hits)) < 0) {
    // A cache that can only be read is of use, too.
  }
}

}  // namespace

FileBlobStore::FileBlobStore(const fs::path& directory, std::uint64_t limit)
    : cache_(directory), directory_(directory / kProgramFolder), limit_(limit) {}

FileBlobStore::~FileBlobStore() {
  // Others may have written meanwhile.
  if (room_) trim();
}

std::vector<std::byte> FileBlobStore::get(std::string_view key) {
  if (key.empty()) return {};
  const fs::path file = directory_ / (hash128(key) + ".bin");
  FileContent content = read_file(file, kMaxFileBytes, Trust::kOurs);
  if (!content.exists) return {};
  std::string problem = content.problem;
  if (problem.empty()) problem = make_private_directory(directory_).value_or("");
  Header header;
  std::size_t begin = 0;
  if (problem.empty()) begin = check_blob(content.bytes, key, problem, header);
  if (!problem.empty()) {
    log(LogLevel::kInfo, "program file " + file.string() + " is not used: " + problem);
    return {};
  }
  count_hit(file, header.hits);
  const auto blob = std::as_bytes(std::span(content.bytes)).subspan(begin);
  return {blob.begin(), blob.end()};
}

void FileBlobStore::put(std::string_view key, std::span<const std::byte> blob) {
  if (key.empty() || key.size() > kMaxKeyBytes || blob.empty()) return;
  const std::uint64_t size = sizeof(Header) + key.size() + blob.size();
  if (size > kMaxFileBytes || size > limit_) return;
  try {
    auto problem = make_private_directory(directory_);
    if (!problem) {
      std::call_once(swept_, [&] { sweep(directory_); });
      const std::string_view text(reinterpret_cast<const char*>(blob.data()), blob.size());
      // Without waiting for the disk: what a power cut leaves of it does not pass the check.
      problem = write_file(directory_ / (hash128(key) + ".bin"), with_header(key, text), false);
    }
    if (!problem) make_room(size);
    if (problem) log(LogLevel::kInfo, "program cache " + directory_.string() + ": " + *problem);
  } catch (const std::exception& error) {
    log(LogLevel::kInfo, std::string("program cache: ") + error.what());
  }
}

// Looks at the folder at the first program, when the room that was left then is used up, and now
// and then, as other processes write too.
void FileBlobStore::make_room(std::uint64_t added) {
  constexpr int kProgramsBetweenLooks = 64;
  const std::lock_guard lock(mutex_);
  if (room_ && *room_ >= added && ++since_look_ < kProgramsBetweenLooks) {
    *room_ -= added;
    return;
  }
  trim();
}

void FileBlobStore::trim() {
  try {
    const std::uint64_t used = trim_cache(cache_, limit_);
    room_ = used < limit_ ? limit_ - used : 0;
    since_look_ = 0;
  } catch (const std::exception& error) {
    log(LogLevel::kInfo, std::string("program cache: ") + error.what());
  }
}

ProgramFile inspect_program(const fs::path& path) {
  FileContent content = read_file(path, kMaxFileBytes, Trust::kOurs);
  ProgramFile file{.problem = content.problem};
  if (!file.problem.empty()) return file;
  Header header;
  check_blob(content.bytes, {}, file.problem, header);
  if (file.problem.empty()) file.hits = header.hits;
  return file;
}

}  // namespace tessera::selection
