// SPDX-License-Identifier: Apache-2.0
// Every environment variable that Tessera looks at; docs/environment.md is the same table for
// users. Read once, in environment.cpp and nowhere else. A malformed value is an InvalidArgument
// that names the variable. Nothing is read in a set-user-id process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/device.hpp"
#include "tessera/precision.hpp"

namespace tessera {

inline constexpr std::uint64_t kDefaultCacheLimit = std::uint64_t{1} << 30;  // bytes

enum class LogLevel { kOff, kError, kWarning, kInfo, kDebug };

struct Environment {
  std::string device;  // TESSERA_DEVICE: selector
  std::optional<std::string>
      cache_directory;  // TESSERA_CACHE_DIR: "" or "off" = no persistent cache
  std::uint64_t cache_limit = kDefaultCacheLimit;  // TESSERA_CACHE_LIMIT: bytes
  bool autotune = false;                           // TESSERA_AUTOTUNE_POLICY: autotune | heuristics
  Precision precision = Precision::kDefault;       // TESSERA_PRECISION: default | high | highest
  LogLevel log = LogLevel::kWarning;  // TESSERA_LOG: off | error | warning | info | debug
  std::string kernel_directory;  // TESSERA_KERNEL_DIR: root of a source tree to read kernels from
  Feature disabled = Feature::kNone;  // TESSERA_DISABLE: names of features, separated by ','
  bool quirks = true;                 // TESSERA_QUIRKS: on | off
  std::string home, xdg_cache_home;   // HOME, XDG_CACHE_HOME
};

const Environment& environment();
Environment read_environment(const char* (*get)(const char* name));  // for tests

}  // namespace tessera
