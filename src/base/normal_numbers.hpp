// SPDX-License-Identifier: Apache-2.0
// Made-up data of tests, benchmarks and the tuner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace tessera {

// Numbers that `draw` gives. Many repeat what was drawn first: as many numbers as no axis divides,
// since drawing takes longer than all else that a large call needs.
template <class Draw>
std::vector<double> drawn_numbers(std::size_t count, const Draw& draw) {
  constexpr std::size_t kMostDrawn = 1048573;  // a prime
  std::vector<double> numbers(count);
  const std::size_t drawn = std::min(count, kMostDrawn);
  for (std::size_t i = 0; i < drawn; ++i) numbers[i] = draw();
  for (std::size_t i = drawn; i < count; ++i) numbers[i] = numbers[i - drawn];
  return numbers;
}

// Numbers of the normal distribution.
inline std::vector<double> normal_numbers(std::size_t count, std::mt19937_64& generator) {
  std::normal_distribution<double> normal;
  return drawn_numbers(count, [&] { return normal(generator); });
}

}  // namespace tessera
