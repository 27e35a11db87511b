// SPDX-License-Identifier: Apache-2.0
// Option values by name, as the records, the command-line tool and user operations see them. The
// typed functions of tessera/operations/ fill them from option structs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/export.hpp"

namespace tessera {

// monostate = not set.
using OptionValue = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                                 std::vector<std::int64_t>>;
using Options = std::map<std::string, OptionValue, std::less<>>;

TESSERA_API std::string to_string(
    const OptionValue& value);  // "none", "true", "3", "0.125", "text", "3,2"

// The value that `text` spells for an option whose default is `like`; throws InvalidArgument naming
// `name`. An unset default takes what the text looks like.
TESSERA_API OptionValue parse_option(std::string_view name, std::string_view text,
                                     const OptionValue& like);

}  // namespace tessera
