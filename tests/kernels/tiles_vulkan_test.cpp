// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "runtime/glsl.hpp"
#include "tile_test.hpp"

namespace tessera::device {
namespace {

constexpr double kFloat = 0x1p-24;

class VulkanTiles : public Tiles {};

TEST_F(VulkanTiles, FloatProductsAreThoseOfPlainLoops) {
  if (!runtime::can_compile_glsl())
    GTEST_SKIP() << "this build has no libshaderc, which compiles the kernels of these tests";
  open(probe_vulkan());
  if (IsSkipped()) return;
  constexpr std::uint32_t kFeatures = 22, kColumns = 14;
  const std::vector<std::uint32_t> words = runtime::compile_glsl(
      "tests/tile_products.comp", kernel_text("tile_products.comp", {"shaders", "src"}),
      {{"FEATURES", kFeatures}, {"COLUMNS_OUT", kColumns}});
  ProgramRequest request;
  request.name = "tests/tile_products";
  request.entry = "main";
  request.spirv = words;
  request.group = {16, 1, 1};
  request.bindings = 5;
  request.argument_bytes = 4;
  const ProgramPtr program = build(request);
  for (const std::uint32_t hidden : {0U, 0x8421U}) {
    const Matrix a = random_matrix(8, kFeatures, 1), b = random_matrix(16, kFeatures, 2);
    Matrix c = random_matrix(16, kColumns, 3);
    for (std::uint32_t row = 0; row < c.rows; ++row) {
      if ((hidden >> row & 1) == 0) continue;
      for (std::uint32_t j = 0; j < kColumns; ++j)
        c.values[std::size_t{row} * kColumns + j] = std::numeric_limits<double>::quiet_NaN();
    }
    const BufferPtr product = output(8 * 16), sums = output(8 * 16);
    run(program, request.group,
        {buffer(a, DType::kF32), buffer(b, DType::kF32), buffer(c, DType::kF32), product, sums},
        std::as_bytes(std::span(&hidden, 1)), {1, 1, 1});
    Matrix weights = read(product, 16);
    expect_products(weights, a, b, kFeatures * kFloat);
    for (std::size_t i = 0; i < weights.values.size(); ++i)
      if ((hidden >> i % 16 & 1) != 0) weights.values[i] = 0;
    expect_sums(read(sums, 16), weights, c, 16 * kFloat);
  }
}

}  // namespace
}  // namespace tessera::device
