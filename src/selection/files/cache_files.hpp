// SPDX-License-Identifier: Apache-2.0
// The files of a cache directory that Tessera wrote, and how they go away again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::selection {

inline constexpr std::string_view kProgramFolder = "programs";
inline constexpr std::string_view kProgramMagic = "tessprg\n";  // a program begins so
inline constexpr std::string_view kChoicesHead = R"({"format": "tessera-choices")";  // and choices
inline constexpr std::string_view kDamagedSuffix = ".damaged";

enum class CacheFileKind : std::uint8_t {
  kChoices,    // choices-<fingerprint>.json
  kDamaged,    // choices-<fingerprint>.json.damaged
  kLock,       // choices-<fingerprint>.json.lock
  kProgram,    // <hash>.bin
  kTemporary,  // of one of these
};
// By the name alone; nothing for names that Tessera gives to no file.
std::optional<CacheFileKind> kind_of_name(std::string_view name);

// A file with a name of ours, and not a link.
struct NamedFile {
  std::filesystem::path path{};
  CacheFileKind kind{};
  std::uint64_t bytes = 0;
  std::int64_t last_use_ns = 0;  // since 1970; a program's is when it was last loaded
};
// Those of a folder, by name. A folder that is itself a link has none.
std::vector<NamedFile> named_files(const std::filesystem::path& folder);

// Removes a file if it is a regular one that belongs to this user and begins as its kind does.
// Where it is not removed, why. Follows no link, also when the folder is turned into one meanwhile.
std::optional<std::string> remove_own(const NamedFile& file);

// Makes the files of a cache directory take at most `limit` bytes: programs go in the order of
// their last use, then choices in that of their last change. One process at a time; when another is
// at it, nothing is done. Returns what is left.
std::uint64_t trim_cache(const std::filesystem::path& directory, std::uint64_t limit);

}  // namespace tessera::selection
