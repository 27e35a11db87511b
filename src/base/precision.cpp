// SPDX-License-Identifier: Apache-2.0
#include "tessera/precision.hpp"

#include <string>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"

namespace tessera {

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::kDefault:
      return "default";
    case Precision::kHigh:
      return "high";
    case Precision::kHighest:
      return "highest";
  }
  return "unknown";
}

Precision parse_precision(std::string_view text) try {
  for (const Precision precision : {Precision::kDefault, Precision::kHigh, Precision::kHighest}) {
    if (text == to_string(precision)) return precision;
  }
  throw InvalidArgument("precision is default, high or highest, not '" + std::string(text) + "'");
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
