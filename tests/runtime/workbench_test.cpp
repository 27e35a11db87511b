// SPDX-License-Identifier: Apache-2.0
#include "runtime/workbench.hpp"

#include <gtest/gtest.h>

namespace tessera::runtime {
namespace {

// Bytes that a buffer takes with the bands.
std::uint64_t banded(const TensorSpec& spec, const DeviceProfile& profile) {
  const std::int64_t guard = guard_elements(spec, profile);
  return static_cast<std::uint64_t>(spec.last_element() + 1 + 2 * guard) * size_of(spec.dtype);
}

TEST(GuardBands, AreShorterWhereABindingEnds) {
  DeviceProfile profile;
  const TensorSpec spec = TensorSpec::contiguous(DType::kF32, {1 << 20});
  EXPECT_EQ(guard_elements(spec, profile), 1024) << "no limits are known";
  profile.max_binding = std::uint64_t{1} << 32;
  EXPECT_EQ(guard_elements(spec, profile), 1024);
  for (const std::uint64_t spare : {0, 4, 511, 512, 1000, 4096, 8191, 8192}) {
    profile.max_binding = (std::uint64_t{4} << 20) + spare;
    profile.max_allocation = 0;
    EXPECT_LE(banded(spec, profile), profile.max_binding) << spare;
    std::swap(profile.max_binding, profile.max_allocation);
    EXPECT_LE(banded(spec, profile), profile.max_allocation) << spare;
    EXPECT_EQ(guard_elements(spec, profile) % 64, 0) << "alignment stays";
    EXPECT_EQ(guard_elements(spec, profile) > 0, spare >= 512) << spare;
  }
  profile.max_allocation = 100;
  EXPECT_EQ(guard_elements(spec, profile), 0) << "the allocation says what is too large";
}

// The copy of `values` in `dtype`, against the bounds where the record names none.
std::string failure_of_copy(DType dtype, const std::vector<double>& values, double factor) {
  Operation operation;
  operation.name = "copy";
  operation.operands = {{.name = "x", .shape = "[n]", .dtypes = {DType::kF32}},
                        {.name = "y", .role = Role::kOutput, .shape = "[n]", .dtypes = {dtype}}};
  operation.validate = [](Problem& problem) { problem.dtype = DType::kF32; };
  operation.reference = [](const Problem&, std::span<HostTensor> tensors) {
    tensors[1].write(tensors[0].read());
  };
  const Shape shape{static_cast<std::int64_t>(values.size())};
  const TensorSpec x = TensorSpec::contiguous(DType::kF32, shape);
  const TensorSpec y = TensorSpec::contiguous(dtype, shape);
  const Problem problem = make_problem(operation, {x, y}, {});
  std::vector<std::byte> inputs(values.size() * sizeof(float)), outputs(inputs.size());
  std::vector<HostTensor> tensors{{.spec = x, .data = inputs.data()},
                                  {.spec = y, .data = outputs.data()}};
  tensors[0].write(values);
  const std::vector<Expectation> expected = expect(problem, tensors, {}, 0);
  std::vector<double> results = tensors[0].read();
  for (double& value : results) value *= factor;
  tensors[1].write(results);
  return compare(problem, tensors, expected).failure;
}

TEST(Expect, NumbersThatAreRoundedOnceAreRight) {
  std::vector<double> values;
  for (int i = 1; i <= 70; ++i) values.push_back(0.1 * i);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3FN, DType::kE5M2,
                            DType::kI8, DType::kI4, DType::kU4}) {
    EXPECT_EQ(failure_of_copy(dtype, values, 1), "") << to_string(dtype);
    EXPECT_NE(failure_of_copy(dtype, values, 0.7), "") << to_string(dtype);
  }
}

}  // namespace
}  // namespace tessera::runtime
