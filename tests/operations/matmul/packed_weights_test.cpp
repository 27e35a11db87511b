// SPDX-License-Identifier: Apache-2.0
// Packed weights on a processor against the reference of linear, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tessera/error.hpp"
#include "tessera/operations/linear.hpp"

namespace tessera {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::vector<float> values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> draw;
  std::vector<float> list(static_cast<std::size_t>(count));
  std::ranges::generate(list, [&] { return draw(generator); });
  return list;
}

// 70 and 6 columns end with no panel, 32 and 64 with one.
class PackedWeights : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(PackedWeights, MultiplyAsTheyDoUnpacked) {
  const std::int64_t out = GetParam(), in = 19, half = out / 2;
  std::vector<std::vector<float>> results;
  for (const char* device : {"host", "opencl:cpu"}) {
    const Context context = Context::open(device);
    const Tensor input = context.upload(values(2 * 3 * in, 1), {2, 3, in});
    const Tensor weight = context.upload(values(out * in, 2), {out, in});
    const LinearOptions plain{.activation = MatmulActivation::kRelu,
                              .bias = context.upload(values(out, 3), {out}),
                              .residual = context.upload(values(6 * out, 4), {2, 3, out})};
    const LinearOptions pairs{.activation = MatmulActivation::kSwiglu,
                              .bias = context.upload(values(3, 5), {3, 1}),
                              .gate = context.upload(values(6 * half, 6), {2, 3, half})};
    const Tensor vector = input.slice(0, 0, 1).slice(1, 0, 1).reshape({in});
    const std::pair<Tensor, LinearOptions> calls[] = {{input, plain}, {input, pairs}, {vector, {}}};
    std::size_t number = 0;
    for (const auto& [x, options] : calls) {
      if (std::string(device) == "host") {
        results.push_back(context.download<float>(linear(context, x, weight, options)));
        continue;
      }
      const Tensor result = linear(context, x, pack_weights(context, weight), options);
      EXPECT_THAT(context.download<float>(result), Pointwise(FloatNear(2e-5F), results[number++]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Columns, PackedWeights, ::testing::Values(6, 32, 70));

TEST(PackedWeightsRefusals, SayWhatIsWrong) {
  const Context host = Context::open("host"), context = Context::open("opencl:cpu");
  const Tensor weight = context.upload(values(40 * 4, 1), {40, 4});
  const Tensor input = context.upload(values(8, 2), {2, 4});
  const tessera::PackedWeights packed = pack_weights(context, weight);
  const auto refused = [&](const auto& call, const char* message) {
    try {
      call();
      ADD_FAILURE() << message;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  };
  refused(
      [&] {
        pack_weights(host, host.upload(values(4, 1), {2, 2}));
      },
      "takes weights as they are; processors through OpenCL pack them");
  refused([&] { pack_weights(context, input.slice(0, 0, 1).reshape({4})); },
          "the weights are not a matrix");
  refused(
      [&] {
        pack_weights(context, context.empty(DType::kI8, {4, 4}));
      },
      "the weights are f32, f16 or bf16, not i8");
  refused([&] { linear(context, input, tessera::PackedWeights{}); },
          "the packed weights are an empty tensor");
  refused([&] { linear(context, input, {.panels = weight, .out_features = 40}); },
          "panels of weights are a contiguous f32[panels, in_features, width], not f32[40, 4]");
  const Tensor other = context.upload(values(10 * 4 * 4, 3), {10, 4, 4});
  refused([&] { linear(context, input, {.panels = other, .out_features = 40}); },
          "the weights were packed in panels of 4 columns, for another device");
  refused([&] { linear(context, input, {.panels = packed.panels, .out_features = 400}); },
          "panels do not hold 400 out_features");
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  refused([&] { linear(context, input, {.panels = packed.panels, .out_features = kMost}); },
          "panels do not hold 9223372036854775807 out_features");
  refused([&] { linear(context, input, packed, {.bias = input}); }, "has not 40 columns");
  const Tensor residual = context.upload(values(2 * 40, 4), {1, 2, 40});
  refused([&] { linear(context, input, packed, {.residual = residual}); },
          "residual f32[1, 2, 40] has more axes than the output");
  refused([&] { linear(context, input, packed, {.scale_input = input}); },
          "packed weights are floats, which have no scales");
}

}  // namespace
}  // namespace tessera
