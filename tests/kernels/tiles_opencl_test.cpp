// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "abi/shared.h"
#include "tile_test.hpp"

namespace tessera::device {
namespace {

class OpenClTiles : public Tiles {
 protected:
  ProgramRequest request(const std::string& file, const std::string& entry, std::uint32_t items,
                         std::uint32_t bindings, std::vector<Define> defines,
                         std::uint32_t argument_bytes = 4) {
    ProgramRequest result;
    result.name = "tests/" + file;
    result.entry = entry;
    result.source = kernel_text(file, {"cl_kernels", "src"});
    result.defines = std::move(defines);
    result.group = {items, 1, 1};
    result.bindings = bindings;
    result.argument_bytes = argument_bytes;
    return result;
  }
};

std::span<const std::byte> bytes_of(const std::uint32_t& number) {
  return std::as_bytes(std::span(&number, 1));
}

std::uint32_t axis(DType dtype) {
  return dtype == DType::kF16 ? DTYPE_F16 : dtype == DType::kBF16 ? DTYPE_BF16 : DTYPE_F32;
}

// Dims that divide no vector; rows that nobody sees hold NaN.
TEST_F(OpenClTiles, FloatProductsAreThoseOfPlainLoops) {
  open(probe_opencl());
  if (IsSkipped()) return;
  constexpr std::uint32_t kFeatures = 22, kColumns = 14;
  const ProgramPtr program = build(
      request("tile_products.cl", "tile_products", 16, 6,
              {{"DTYPE", 0}, {"ALIGNED", 0}, {"FEATURES", kFeatures}, {"COLUMNS_OUT", kColumns}}));
  for (const std::uint32_t hidden : {0U, 0x8421U}) {
    const Matrix a = random_matrix(8, kFeatures, 1), b = random_matrix(16, kFeatures, 2);
    Matrix c = random_matrix(16, kColumns, 3);
    for (std::uint32_t row = 0; row < c.rows; ++row) {
      if ((hidden >> row & 1) == 0) continue;
      for (std::uint32_t j = 0; j < kColumns; ++j)
        c.values[std::size_t{row} * kColumns + j] = std::numeric_limits<double>::quiet_NaN();
    }
    const BufferPtr product = output(8 * 16), sums = output(8 * 16), rows = output(8 * 2);
    run(program, {16, 1, 1},
        {buffer(a, DType::kF32), buffer(b, DType::kF32), buffer(c, DType::kF32), product, sums,
         rows},
        bytes_of(hidden), {1, 1, 1});
    Matrix weights = read(product, 16);
    expect_products(weights, a, b, kFeatures * kFloat);
    expect_rows(read(rows, 2), weights, 16 * kFloat);
    for (std::size_t i = 0; i < weights.values.size(); ++i)
      if ((hidden >> i % 16 & 1) != 0) weights.values[i] = 0;
    expect_sums(read(sums, 16), weights, c, 16 * kFloat);
  }
}

// 20 rows are no whole panel, 13 features no whole vector.
TEST_F(OpenClTiles, PanelsHoldRowsAndGiveThemBack) {
  open(probe_opencl(), Feature::kNone, true);
  if (IsSkipped()) return;
  constexpr std::uint32_t kRows = 20, kFeatures = 13, kVectors = 2, kWidth = 4;
  const DType dtype = DType::kF16;
  Matrix from = random_matrix(kRows, kFeatures, 4, dtype);
  from.values[std::size_t{7} * kFeatures + 12] = std::numeric_limits<double>::infinity();
  const BufferPtr to = output(std::size_t{kRows} * kFeatures, dtype), wild = output(kRows);
  run(request("cpu_panels.cl", "panels", 1, 3,
              {{"DTYPE", axis(dtype)},
               {"VECTOR_WIDTH", kWidth},
               {"VECTORS", kVectors},
               {"FEATURES", kFeatures}}),
      {buffer(from, dtype), to, wild}, bytes_of(kRows), {3, 1, 1});
  const Matrix got = read(to, kFeatures, dtype), odd = read(wild, 1);
  for (std::size_t i = 0; i < got.values.size(); ++i)
    EXPECT_EQ(got.values[i], rounded(3 * from.values[i], dtype)) << i;
  for (std::uint32_t row = 0; row < kRows; ++row)
    EXPECT_EQ(std::isnan(odd.values[row]), row == 7) << row;
}

TEST_F(OpenClTiles, PanelsMultiplyRows) {
  open(probe_opencl(), Feature::kNone, true);
  if (IsSkipped()) return;
  constexpr std::uint32_t kFeatures = 13, kLanes = 8;
  const DType dtype = DType::kF16;
  const Matrix rows = random_matrix(4, kFeatures, 14),
               columns = random_matrix(kLanes, kFeatures, 15, dtype);
  const BufferPtr products = output(4 * kLanes);
  run(request(
          "cpu_panels.cl", "products", 1, 3,
          {{"DTYPE", axis(dtype)}, {"VECTOR_WIDTH", 4}, {"VECTORS", 2}, {"FEATURES", kFeatures}}),
      {buffer(rows, DType::kF32), buffer(columns, dtype), products}, bytes_of(kLanes), {1, 1, 1});
  expect_products(read(products, kLanes), rows, columns, kFeatures * kFloat);
}

TEST_F(OpenClTiles, VectorFunctionsKeepTheirBounds) {
  open(probe_opencl(), Feature::kNone, true);
  if (IsSkipped()) return;
  Matrix x{1, 512, {}};
  for (int i = -256; i < 256; ++i) x.values.push_back(static_cast<float>(i * 0.3901 + 1e-4 * i));
  const BufferPtr power = output(512), tangent = output(512);
  ProgramRequest functions =
      request("cpu_panels.cl", "functions", 1, 3,
              {{"DTYPE", 0}, {"VECTOR_WIDTH", 4}, {"VECTORS", 2}, {"FEATURES", 13}}, 0);
  run(functions, {buffer(x, DType::kF32), power, tangent}, {}, {128, 1, 1});
  const Matrix powers = read(power, 1), tangents = read(tangent, 1);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double exact = std::exp2(x.values[i]), bound = 3.7 * kFloat * exact;
    EXPECT_NEAR(powers.values[i], exact, bound) << x.values[i];
    const double curve = std::tanh(x.values[i]);
    EXPECT_NEAR(tangents.values[i], curve, 8 * kFloat * std::fabs(curve)) << x.values[i];
  }
}

// NaN with any bits stays NaN, also those that an integer sum would carry out of the exponent.
TEST_F(OpenClTiles, VectorFunctionsTakeAnyBits) {
  open(probe_opencl(), Feature::kNone, true);
  if (IsSkipped()) return;
  std::vector<std::uint32_t> bits;
  for (const std::uint32_t sign : {0U, 0x80000000U})
    for (std::uint32_t high = 0; high < 0x800000; high += 0x1fe00)
      for (std::uint32_t low = 0; low < 0x200; ++low)
        if ((high | low) != 0) bits.push_back(sign | 0x7f800000 | high | low);
  const std::size_t nans = bits.size();
  for (const std::uint32_t sign : {0U, 0x80000000U})
    for (const std::uint32_t number : {0x7f800000U, 0x7f7fffffU, 0x00800000U, 0x007fffffU, 1U, 0U})
      bits.push_back(sign | number);
  while (bits.size() % 4 != 0) bits.push_back(0);
  const BufferPtr power = output(bits.size()), tangent = output(bits.size());
  run(request("cpu_panels.cl", "functions", 1, 3,
              {{"DTYPE", 0}, {"VECTOR_WIDTH", 4}, {"VECTORS", 2}, {"FEATURES", 13}}, 0),
      {buffer(std::as_bytes(std::span(bits))), power, tangent}, {},
      {static_cast<std::uint32_t>(bits.size() / 4), 1, 1});
  const Matrix powers = read(power, 1), tangents = read(tangent, 1);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const auto x = std::bit_cast<float>(bits[i]);
    SCOPED_TRACE(testing::Message() << std::hex << bits[i]);
    if (i < nans) {
      ASSERT_TRUE(std::isnan(powers.values[i]));
      ASSERT_TRUE(std::isnan(tangents.values[i]));
      continue;
    }
    if (std::isinf(x)) {
      EXPECT_TRUE(std::isnan(powers.values[i]));
    } else if (std::fabs(x) < 1) {
      EXPECT_EQ(powers.values[i], 1);
    }
    const double curve = std::tanh(x);
    EXPECT_NEAR(tangents.values[i], curve, 8 * kFloat * std::fabs(curve) + 0x1p-126);
  }
}

struct MmaCase {
  DType dtype;
  std::uint32_t features, columns;
};

// Of 32 rows of b and c the last five are never read. Dims that divide 16 bytes, and that do not.
TEST_F(OpenClTiles, MatrixInstructionsMultiplyTiles) {
  open(probe_opencl(), Feature::kMmaSync);
  if (IsSkipped()) return;
  for (const MmaCase& each :
       {MmaCase{DType::kF16, 40, 24}, MmaCase{DType::kF16, 37, 21}, MmaCase{DType::kBF16, 40, 24},
        MmaCase{DType::kF32, 40, 24}, MmaCase{DType::kF32, 37, 21}}) {
    const DType dtype = each.dtype;
    constexpr std::uint32_t end = 27;
    const Matrix a = random_matrix(32, each.features, 5, dtype);
    Matrix b = random_matrix(32, each.features, 6, dtype);
    Matrix c = random_matrix(32, each.columns, 7, dtype);
    const auto cut = [](Matrix& matrix, double value) {
      for (std::size_t i = std::size_t{end} * matrix.columns; i < matrix.values.size(); ++i)
        matrix.values[i] = value;
    };
    cut(b, std::numeric_limits<double>::quiet_NaN());
    cut(c, std::numeric_limits<double>::quiet_NaN());
    const BufferPtr product = output(32 * 32);
    const BufferPtr sums = output(std::size_t{32} * each.columns, dtype);
    run(request("mma_products.cl", "mma_products", 64, 5,
                {{"DTYPE", axis(dtype)}, {"FEATURES", each.features}, {"COLUMNS", each.columns}}),
        {buffer(a, dtype), buffer(b, dtype), buffer(c, dtype), product, sums}, bytes_of(end),
        {1, 1, 1});
    cut(b, 0);
    cut(c, 0);
    Matrix weights = read(product, 32);
    expect_products(weights, a, b, 64 * kFloat);
    for (double& weight : weights.values) weight = rounded(weight, dtype);
    const double unit = dtype == DType::kF16 ? 0x1p-11 : dtype == DType::kBF16 ? 0x1p-8 : kFloat;
    expect_sums(read(sums, each.columns, dtype), weights, c, unit + 64 * kFloat, 0.5);
  }
}

// Maps of 50 rows: what copies read beyond are zeros.
TEST_F(OpenClTiles, HoppersUnitMultipliesTilesThatMapsDescribe) {
  open(probe_opencl(), Feature::kWgmma);
  if (IsSkipped()) return;
  constexpr std::uint32_t kRows = 50, kFeatures = 128;
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const Matrix a = random_matrix(kRows, kFeatures, 8, dtype),
                 b = random_matrix(kRows, kFeatures, 9, dtype),
                 c = random_matrix(kRows, 64, 10, dtype);
    const BufferPtr maps = output(3 * 128 / 4), product = output(64 * 64), sums = output(64 * 64);
    const std::vector<Define> defines{{"DTYPE", axis(dtype)}, {"FEATURES", kFeatures}};
    ProgramRequest make = request("hopper_products.cl", "hopper_maps", 128, 4, defines);
    make.ptx_target = "sm_90a";
    run(make, {buffer(a, dtype), buffer(b, dtype), buffer(c, dtype), maps}, bytes_of(kRows),
        {1, 1, 1});
    ProgramRequest multiply = request("hopper_products.cl", "hopper_products", 128, 3, defines, 0);
    multiply.ptx_target = "sm_90a";
    run(multiply, {maps, product, sums}, {}, {1, 1, 1});
    Matrix weights = read(product, 64);
    expect_products(weights, a, b, kFeatures * kFloat);
    for (std::uint32_t i = 0; i < 64; ++i)
      for (std::uint32_t j = 0; j < 64; ++j)
        EXPECT_TRUE(weights.at(i, j) == 0 || (i < kRows && j < kRows)) << i << ", " << j;
    for (double& weight : weights.values) weight = rounded(weight, dtype);
    expect_sums(read(sums, 64), weights, c, 64 * kFloat);
  }
}

}  // namespace
}  // namespace tessera::device
