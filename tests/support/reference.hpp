// SPDX-License-Identifier: Apache-2.0
// References in double precision, on operands that are given by name.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::testing {

inline TensorSpec f32(Shape shape) { return TensorSpec::contiguous(DType::kF32, std::move(shape)); }
inline TensorSpec f16(Shape shape) { return TensorSpec::contiguous(DType::kF16, std::move(shape)); }
inline TensorSpec i32(Shape shape) { return TensorSpec::contiguous(DType::kI32, std::move(shape)); }
inline TensorSpec u8(Shape shape) { return TensorSpec::contiguous(DType::kU8, std::move(shape)); }

using Specs = std::map<std::string, TensorSpec>;
using Values = std::map<std::string, std::vector<double>>;

Problem problem_of(const std::string& operation, const Specs& specs, Options options = {});

// What the reference makes of the inputs, by output. Any dtype but packed ones: floats are double
// here, which shows what it computes before that is rounded.
Values run_reference(const Problem& problem, const Values& inputs);

std::vector<double> normal_numbers(std::size_t count, unsigned seed);
double dot(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tessera::testing
