// SPDX-License-Identifier: Apache-2.0
// What the checks of every family share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/record.hpp"

namespace tessera::operations {

// Throws InvalidArgument, naming the operation, unless `condition` holds.
void require(const Problem& problem, bool condition, const std::string& sentence);
std::string operand_text(const Problem& problem, std::size_t slot);  // "bias f32[1, 8, 16, 16]"
void require_shape(const Problem& problem, std::size_t slot, const Shape& shape);

// One integer of at least `least`. Nothing when the option is not set.
std::optional<std::int64_t> integer_option(const Problem& problem, std::string_view name,
                                           std::int64_t least);

// A length as keys of problems hold it: lengths of one bucket share their tuned choices.
std::string bucket(std::int64_t length);

}  // namespace tessera::operations
