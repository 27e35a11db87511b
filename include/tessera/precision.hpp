// SPDX-License-Identifier: Apache-2.0
// How far the arithmetic of a call may depart from float. Selection obeys it: a variant that does
// less than what the call asks for is refused, whoever names it, and the refusal says so.
//
//   highest  Every product and every sum is that of float arithmetic or better. A float may be
//            multiplied in parts, such as three products of tf32, if the error is that of float.
//   high     Operands are multiplied as they are stored. Factors that are computed between two
//            products, such as the weights of attention, may be rounded to the operands' 16-bit
//            storage type. Sums are float; a matrix unit that adds narrow products in less than
//            float (fp8: about 14 bits) adds at most 128 of them so, and these sums in float.
//   default  Whatever is fastest. Operands may be rounded, too (a float as one tf32), and a matrix
//            unit may add as many products as it likes in the way it does.
//
// In all of them a result is rounded to its storage type once, at the end, and every variant is
// held to the bounds of its own arithmetic.
//
// Who says it, the first that does: the option "precision" of the call, Executor::with_precision(),
// ScopedPrecision, ContextOptions::precision, TESSERA_PRECISION; else it is `default`.
#pragma once

#include <cstdint>
#include <string_view>

#include "tessera/export.hpp"

namespace tessera {

enum class Precision : std::uint8_t { kDefault, kHigh, kHighest };  // in order

TESSERA_API std::string_view to_string(Precision precision);   // "default", "high", "highest"
TESSERA_API Precision parse_precision(std::string_view text);  // throws InvalidArgument

// The default for calls of this thread while the object lives; the innermost counts.
class TESSERA_API ScopedPrecision {
 public:
  explicit ScopedPrecision(Precision precision);
  ~ScopedPrecision();
  ScopedPrecision(const ScopedPrecision&) = delete;
  ScopedPrecision& operator=(const ScopedPrecision&) = delete;
};

}  // namespace tessera
