// SPDX-License-Identifier: Apache-2.0
// What made-up calls hold.
#pragma once

#include <random>

#include "base/tensors/rounding.hpp"
#include "operations/kv_cache/problem.hpp"

namespace tessera::operations::kv_cache {

// Normal numbers times `factor`.
void fill_normal(HostTensor& tensor, std::mt19937_64& random, double factor);
// Scales between 1 / 64 and 1 / 16.
void fill_scales(HostTensor& tensor, std::mt19937_64& random);
// NaN in the first row, zeros in the second, and in the third numbers far apart.
void make_wild(HostTensor& tensor);

}  // namespace tessera::operations::kv_cache
