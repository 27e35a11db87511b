// SPDX-License-Identifier: Apache-2.0
// The one comparison of what a kernel made with what it must be. Every test in it is written as
// !(error <= bound), so that NaN fails.
#pragma once

#include <span>
#include <string>

#include "tessera/record.hpp"

namespace tessera::runtime {

struct Verdict {
  double worst = 0;     // error in units of its bound; 1 is the most that passes
  std::string failure;  // empty = passed; else the first element that is wrong, and by how much
};

// Error over bound of one element; infinite for anything that is not a number close to the wanted
// one. NaN is right where NaN is wanted, and nowhere else.
double error_over_bound(double got, double wanted, double bound);

// Root mean square of the errors of an expectation's finite values, over its bound; infinite where
// one of them is not finite. `got` holds all elements of the output.
double rms_over_bound(std::span<const double> got, const Expectation& expected);

// Compares the requested outputs with expectations.
Verdict compare(const Problem& problem, std::span<const HostTensor> tensors,
                std::span<const Expectation> expectations);

// Why passing would mean little, in a sentence; empty = it means something.
std::string mistrusted(const Expectation& expected);

}  // namespace tessera::runtime
