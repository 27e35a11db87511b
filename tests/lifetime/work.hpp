// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tessera/tessera.hpp"

namespace tessera::testing {

inline Context open_plainly(const std::string& device) {
  return Context::open({.device = device, .use_environment = false});
}

// The mean of two rows, and nothing else of the library's state than what every call touches.
inline bool runs_right(const Context& context) {
  const Tensor input = context.upload(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 4});
  const std::vector<float> mean = context.download<float>(sequence_mean(context, input));
  return mean == std::vector<float>{3, 4, 5, 6} &&
         context.last_execution().operation == "sequence_mean";
}

}  // namespace tessera::testing
