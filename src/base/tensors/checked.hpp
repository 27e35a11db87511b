// SPDX-License-Identifier: Apache-2.0
// 64-bit sizes that come from outside are added and multiplied here, so that none wraps around.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "tessera/error.hpp"

namespace tessera {

// Nothing when the result does not fit.
template <class T>
constexpr std::optional<T> checked_add(T a, std::type_identity_t<T> b) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 8);
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <class T>
constexpr std::optional<T> checked_mul(T a, std::type_identity_t<T> b) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 8);
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The largest T where the product does not fit; of no negative factors.
template <class T>
constexpr T saturating_mul(T a, std::type_identity_t<T> b) {
  return checked_mul(a, b).value_or(std::numeric_limits<T>::max());
}

// Stays right when a factor is zero, wherever it stands.
template <class T>
constexpr std::optional<T> checked_product(std::initializer_list<T> factors) {
  for (const T factor : factors) {
    if (factor == 0) return T{0};
  }
  std::optional<T> product = T{1};
  for (const T factor : factors) {
    product = checked_mul(*product, factor);
    if (!product) break;
  }
  return product;
}

// The same for callers that can say no more than which size it was.
template <class T>
constexpr T add_or_throw(T a, std::type_identity_t<T> b, std::string_view what) {
  if (const auto sum = checked_add(a, b)) return *sum;
  throw InvalidArgument(std::string(what) + " does not fit into 64 bits: " + std::to_string(a) +
                        " + " + std::to_string(b));
}

template <class T>
constexpr T mul_or_throw(T a, std::type_identity_t<T> b, std::string_view what) {
  if (const auto product = checked_mul(a, b)) return *product;
  throw InvalidArgument(std::string(what) + " does not fit into 64 bits: " + std::to_string(a) +
                        " * " + std::to_string(b));
}

}  // namespace tessera
