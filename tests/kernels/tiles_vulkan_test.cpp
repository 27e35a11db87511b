// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "runtime/glsl.hpp"
#include "tile_test.hpp"

namespace tessera::device {
namespace {

class VulkanTiles : public Tiles {
 protected:
  ProgramRequest request(const std::string& name, std::span<const std::uint32_t> words,
                         std::uint32_t items, std::uint32_t bindings) {
    ProgramRequest result;
    result.name = "tests/" + name;
    result.entry = "main";
    result.spirv = words;
    result.group = {items, 1, 1};
    result.bindings = bindings;
    return result;
  }

  // Dims that divide no vector; rows that nobody sees hold NaN.
  void multiply_floats(bool shuffles) {
    constexpr std::uint32_t kFeatures = 22, kColumns = 14;
    const std::vector<std::uint32_t> words = runtime::compile_glsl(
        "tests/tile_products.comp", kernel_text("tile_products.comp", {"shaders", "src"}),
        {{"FEATURES", kFeatures}, {"COLUMNS_OUT", kColumns}, {"SUBGROUP", shuffles ? 1U : 0U}});
    ProgramRequest asked = request("tile_products", words, 16, 6);
    asked.argument_bytes = 4;
    const ProgramPtr program = build(asked);
    for (const std::uint32_t hidden : {0U, 0x8421U}) {
      const Matrix a = random_matrix(8, kFeatures, 1), b = random_matrix(16, kFeatures, 2);
      Matrix c = random_matrix(16, kColumns, 3);
      for (std::uint32_t row = 0; row < c.rows; ++row) {
        if ((hidden >> row & 1) == 0) continue;
        for (std::uint32_t j = 0; j < kColumns; ++j)
          c.values[std::size_t{row} * kColumns + j] = std::numeric_limits<double>::quiet_NaN();
      }
      const BufferPtr product = output(8 * 16), sums = output(8 * 16), rows = output(8 * 2);
      run(program, asked.group,
          {buffer(a, DType::kF32), buffer(b, DType::kF32), buffer(c, DType::kF32), product, sums,
           rows},
          std::as_bytes(std::span(&hidden, 1)), {1, 1, 1});
      Matrix weights = read(product, 16);
      expect_products(weights, a, b, kFeatures * kFloat);
      expect_rows(read(rows, 2), weights, 16 * kFloat);
      for (std::size_t i = 0; i < weights.values.size(); ++i)
        if ((hidden >> i % 16 & 1) != 0) weights.values[i] = 0;
      expect_sums(read(sums, 16), weights, c, 16 * kFloat);
    }
  }
};

constexpr const char* kNoCompiler =
    "this build has no libshaderc, which compiles the kernels of these tests";

TEST_F(VulkanTiles, FloatProductsAreThoseOfPlainLoops) {
  if (!runtime::can_compile_glsl()) GTEST_SKIP() << kNoCompiler;
  open(probe_vulkan());
  if (!IsSkipped()) multiply_floats(false);
}

TEST_F(VulkanTiles, ShufflesReduceRows) {
  if (!runtime::can_compile_glsl()) GTEST_SKIP() << kNoCompiler;
  open(probe_vulkan(), Feature::kSubgroupArithmetic);
  if (!IsSkipped()) multiply_floats(true);
}

TEST_F(VulkanTiles, CooperativeMatricesMultiplyTiles) {
  std::ifstream stream(TESSERA_BINARY_DIR "/generated/tests/cooperative_products.spv",
                       std::ios::binary);
  if (!stream) GTEST_SKIP() << "the glslc of this build knows no cooperative matrices";
  const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  std::vector<std::uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), 4 * words.size());
  open(probe_vulkan(), Feature::kCooperativeMatrix | Feature::kFp16Arithmetic);
  if (IsSkipped()) return;
  bool some = false;
  for (const MatrixShape& shape : device_->profile().matrix_shapes) {
    if (shape.input != DType::kF16 || shape.k % 8 != 0 || shape.n % 8 != 0) continue;
    some = true;
    const std::uint32_t features = 2 * shape.k, columns = 2 * shape.n;
    const Matrix a = random_matrix(shape.m, features, 11, DType::kF16),
                 b = random_matrix(columns, features, 12, DType::kF16),
                 c = random_matrix(features, columns, 13, DType::kF16);
    const std::size_t results = std::size_t{shape.m} * columns;
    const BufferPtr product = output(results), sums = output(results);
    ProgramRequest asked =
        request("cooperative_products", words, device_->profile().subgroup_size, 5);
    asked.specialization = {{3, shape.m}, {4, shape.n}, {5, shape.k}};
    run(asked,
        {buffer(a, DType::kF16), buffer(b, DType::kF16), buffer(c, DType::kF16), product, sums}, {},
        {1, 1, 1});
    SCOPED_TRACE(to_string(shape));
    expect_products(read(product, columns), a, b, 2 * features * kFloat);
    expect_sums(read(sums, columns), a, c, 2 * features * kFloat);
  }
  if (!some) GTEST_SKIP() << "this device's matrices of f16 are no multiple of eight elements wide";
}

}  // namespace
}  // namespace tessera::device
