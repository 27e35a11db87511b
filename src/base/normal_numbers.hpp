// SPDX-License-Identifier: Apache-2.0
// Made-up data of tests, benchmarks and the tuner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace tessera {

// Numbers of the normal distribution. Many repeat what was drawn first: as many numbers as no axis
// divides, since drawing takes longer than all else that a large call needs.
inline std::vector<double> normal_numbers(std::size_t count, std::mt19937_64& generator) {
  constexpr std::size_t kMostDrawn = 1048573;  // a prime
  std::normal_distribution<double> normal;
  std::vector<double> numbers(count);
  const std::size_t drawn = std::min(count, kMostDrawn);
  for (std::size_t i = 0; i < drawn; ++i) numbers[i] = normal(generator);
  for (std::size_t i = drawn; i < count; ++i) numbers[i] = numbers[i - drawn];
  return numbers;
}

}  // namespace tessera
