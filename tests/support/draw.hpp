// SPDX-License-Identifier: Apache-2.0
// Numbers drawn from a seed, the same on every machine.
#pragma once

#include <cstdint>
#include <iterator>
#include <random>

namespace tessera::testing {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15 + 1) {}

  // Below n.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  bool chance(double probability) { return unit() < probability; }
  template <class Values>
  auto of(const Values& values) {
    return *(std::begin(values) + below(static_cast<std::int64_t>(std::size(values))));
  }
  // An index, each with its share.
  template <class Shares>
  std::size_t share(const Shares& shares) {
    double rest = unit();
    for (std::size_t n = 0; n + 1 < std::size(shares); ++n) {
      rest -= shares[n];
      if (rest < 0) return n;
    }
    return std::size(shares) - 1;
  }
  std::uint64_t word() { return random_(); }

 private:
  std::mt19937_64 random_;
};

}  // namespace tessera::testing
