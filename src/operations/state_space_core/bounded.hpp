// SPDX-License-Identifier: Apache-2.0
// What outputs must be, and by how much a float computation may be off.
#pragma once

#include <span>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::operations::state_space {

// Row-major values of an output, and the largest errors before they are rounded to its dtype.
struct Bounded {
  std::vector<double> values{}, bounds{};
  explicit Bounded(std::size_t count = 0) : values(count), bounds(count) {}
  void add(std::size_t at, double value, double bound) {
    values[at] += value;
    bounds[at] += bound;
  }
};

// A number in float arithmetic, and by how much it may be off.
struct Rough {
  double value = 0, error = 0;
};

// Devices need not keep numbers below the smallest float: of a product or sum of a magnitude of at
// most `size`, min(size, 2^-126) may be lost.
double lost_of(double size);

// The functions of devices are good to 3 units in the last place in OpenCL, and exp to 3 + 2 |x| in
// Vulkan; each is taken with what its argument is off by.
Rough rough_exp(Rough x);
Rough rough_sigmoid(Rough x);
Rough rough_silu(Rough x);
Rough rough_silu_slope(Rough x);
Rough rough_softplus(Rough x);
Rough rough_product(Rough a, Rough b);

// By slot of the outputs, empty where a call has none.
using Outputs = std::vector<Bounded>;
Outputs outputs_of(const Problem& problem);  // zeros for every output of the call
void write_outputs(const Problem& problem, Outputs outputs, std::span<HostTensor> tensors);
std::vector<Expectation> expectations_of(const Problem& problem, Outputs outputs);

std::vector<double> read_of(const Problem& problem, std::span<HostTensor> tensors,
                            std::size_t slot);

}  // namespace tessera::operations::state_space
