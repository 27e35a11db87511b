// SPDX-License-Identifier: Apache-2.0
// Made-up data of tests, benchmarks and the tuner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace tessera {

// Numbers that `draw` gives, for so many elements. More than a prime of them, which no axis
// divides, are not drawn, since that takes longer than all else that a large call needs: they are
// repeated.
template <class Draw>
std::vector<double> drawn_numbers(std::size_t elements, const Draw& draw) {
  constexpr std::size_t kMostDrawn = 1048573;
  std::vector<double> numbers(std::min(elements, kMostDrawn));
  for (double& number : numbers) number = draw();
  return numbers;
}

// Those of the normal distribution.
inline std::vector<double> normal_numbers(std::size_t elements, std::mt19937_64& generator) {
  std::normal_distribution<double> normal;
  return drawn_numbers(elements, [&] { return normal(generator); });
}

// So many, again and again where there are fewer.
inline std::vector<double> repeated(std::vector<double> numbers, std::size_t count) {
  const std::size_t drawn = numbers.size();
  numbers.resize(count);
  for (std::size_t i = drawn; i < count; i += drawn)
    std::copy_n(numbers.begin(), std::min(drawn, count - i),
                numbers.begin() + static_cast<std::ptrdiff_t>(i));
  return numbers;
}

}  // namespace tessera
