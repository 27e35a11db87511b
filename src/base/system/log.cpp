// SPDX-License-Identifier: Apache-2.0
#include "base/system/log.hpp"

#include <cstdio>
#include <string>

#include "base/printable.hpp"

namespace tessera {
namespace {

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kOff:
      break;
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "off";
}

// Logging happens on paths that must not throw. A malformed variable is reported by whoever asks
// for its value.
LogLevel limit() {
  try {
    return environment().log;
  } catch (...) {
    return LogLevel::kWarning;
  }
}

}  // namespace

bool log_enabled(LogLevel level) { return level != LogLevel::kOff && level <= limit(); }

void log(LogLevel level, std::string_view message) {
  if (!log_enabled(level)) return;
  // One write per line, so that lines of several threads do not mix.
  std::string line = "tessera: ";
  line.append(name_of(level)).append(": ").append(printable(message)).append("\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace tessera
