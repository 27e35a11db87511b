// SPDX-License-Identifier: Apache-2.0
// The option that every operation has.
#pragma once

#include <string_view>

#include "tessera/record.hpp"

namespace tessera::kernel {

inline constexpr std::string_view kPrecision = "precision";

OptionInfo precision_option();
// What the options say; nothing where they don't. Throws InvalidArgument for anything else.
std::optional<Precision> asked_precision(const Options& options);

}  // namespace tessera::kernel
