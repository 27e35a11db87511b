// SPDX-License-Identifier: Apache-2.0
// Lines to stderr, at most as chatty as TESSERA_LOG allows. A message is one line: what a terminal
// would obey in it is escaped.
#pragma once

#include <string_view>

#include "base/system/environment.hpp"

namespace tessera {

bool log_enabled(LogLevel level);
void log(LogLevel level, std::string_view message);  // "tessera: warning: message"

}  // namespace tessera
