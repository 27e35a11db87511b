// SPDX-License-Identifier: Apache-2.0
// The one format of remembered choices: a cache file holds one device, an export and a file of
// tuning/ may hold many.
//
//   {"format": "tessera-choices", "version": 2, "library": "0.1.0",
//    "devices": [{"fingerprint": "…", "device": {"name": "…", …},
//                 "entries": {"flash_attention|dtype=f16;…": {"variant": "tile", "config":
//                 "BLOCK_K=96,WG_X=1",
//                             "origin": "autotune", "milliseconds": 1.25, "error_over_bound": 0.2,
//                             "date": "2025-01-31T12:00:00Z", "kernels": "…", "check": "…"}}}]}
//
// "kernels" is kernel::hash_of_kernels() when it was tuned; version 1, which is read too, lacks it.
// "check" is a hash of the fingerprint, the key and the entry: it finds damage, not forgery. A
// cache file must have it; in a file that the user names, or that a person edited, it may be
// missing but not be wrong.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "selection/selector.hpp"

namespace tessera::selection {

inline constexpr std::uint64_t kMaxChoicesBytes = std::uint64_t{64} << 20;

struct DeviceChoices {
  std::string fingerprint{};
  DeviceProfile device{};
  std::map<std::string, Entry> entries{};
};

struct ChoicesDocument {
  std::vector<DeviceChoices> devices{};
  bool newer = false;           // of a format that a later version of the library made
  std::string problem{};        // why nothing could be read, or nothing
  std::size_t bad_entries = 0;  // that were left out
  std::string entry_problem{};  // of the first of them
};

enum class Checks { kRequired, kOptional };

// Never throws but for lack of memory; never gives an entry that was not written like that.
ChoicesDocument parse_choices(std::string_view text, Checks checks);
std::string print_choices(const std::vector<DeviceChoices>& devices);

bool is_fingerprint(std::string_view text);  // 32 lower-case hex digits

}  // namespace tessera::selection
