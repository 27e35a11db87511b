// SPDX-License-Identifier: Apache-2.0
#include "kernel/precision.hpp"

#include <algorithm>
#include <string>

#include "tessera/error.hpp"

namespace tessera {

Precision precision_of(const Variant& variant, DType dtype) {
  const bool rounds = variant.rounds_factors && bits_of(dtype) < 32;
  return rounds ? std::min(variant.precision, Precision::kHigh) : variant.precision;
}

namespace kernel {

OptionInfo precision_option() {
  return {.name = std::string(kPrecision),
          .type = "one of default, high, highest",
          .doc = "how far arithmetic may depart from float, see tessera/precision.hpp"};
}

std::optional<Precision> asked_precision(const Options& options) {
  const auto found = options.find(kPrecision);
  if (found == options.end() || std::holds_alternative<std::monostate>(found->second))
    return std::nullopt;
  const auto* text = std::get_if<std::string>(&found->second);
  return parse_precision(text != nullptr ? *text : to_string(found->second));
}

}  // namespace kernel
}  // namespace tessera
