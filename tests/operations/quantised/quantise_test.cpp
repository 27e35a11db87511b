// SPDX-License-Identifier: Apache-2.0
// What quantise and dequantise refuse, and every bit pattern of the formats through every device.
#include "tessera/operations/quantise.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/tensors/rounding.hpp"
#include "support/profiles.hpp"
#include "support/reference.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using testing::f32;
using ::testing::HasSubstr;
using testing::problem_of;
using testing::Specs;

TEST(QuantiseRefusals, SayWhatIsWrong) {
  struct Row {
    const char* operation;
    Specs specs;
    Options options;
    const char* message;
  };
  const auto codes = [](DType dtype, Shape shape) {
    return TensorSpec::contiguous(dtype, std::move(shape));
  };
  const Specs one{{"codes", codes(DType::kU8, {4, 64})}, {"scale", f32({4, 2})}};
  const auto with = [&](const char* name, TensorSpec spec) {
    Specs specs = one;
    specs[name] = std::move(spec);
    return specs;
  };
  const Row rows[] = {
      {"quantise", {{"input", f32({})}}, {}, "input f32[] must be [..., columns]"},
      {"quantise",
       {{"input", f32({4, 64})}},
       {{"group_size", std::int64_t{24}}},
       "groups have a multiple of 32 columns, not 24"},
      {"quantise",
       {{"input", f32({4, 63})}},
       {{"dtype", std::string("u4")}},
       "input f32[4, 63] has rows that end within a byte of codes"},
      {"quantise",
       {{"input", f32({4, 64})}},
       {{"dynamic", true}, {"dtype", std::string("u8")}},
       "dynamic scales are those of i8, and codes are u8"},
      {"quantise",
       {{"input", f32({4, 64})}},
       {{"dtype", std::string("i2")}},
       "option 'dtype' must be i8 or u8 or i4 or u4 or e4m3fn or e5m2"},
      {"quantise",
       {{"input", f32({4, 48})}},
       {{"layout", std::string("q8_0")}},
       "blocks have 32 floats, and rows of input 48"},
      {"quantise",
       {{"input", f32({4, 64})}},
       {{"layout", std::string("q4_0")}, {"group_size", std::int64_t{32}}},
       "blocks of a layout have 32 columns of a row: no group_size"},
      {"quantise",
       {{"input", f32({4, 64})}},
       {{"layout", std::string("q8_0")}, {"dtype", std::string("e4m3fn")}},
       "blocks of a layout are bytes, u8, and dtype is e4m3fn"},
      {"quantise",
       {{"input", f32({4, 64})}},
       {{"layout", std::string("q4_0")}, {"dynamic", true}},
       "blocks of a layout hold their scales: none are dynamic"},
      {"dequantise",
       one,
       {{"layout", std::string("q8_0")}},
       "blocks have 34 bytes, and rows of codes 64"},
      {"dequantise",
       {{"codes", codes(DType::kU8, {4, 36})}, {"scale", f32({4, 2})}},
       {{"layout", std::string("q4_0")}},
       "blocks have scales of their own, and the call has scale or zero_point"},
      {"dequantise",
       {{"codes", codes(DType::kI8, {4, 36})}},
       {{"layout", std::string("q4_0")}},
       "codes i8[4, 36] must be u8: bytes of blocks"},
      {"dequantise",
       {{"codes", codes(DType::kU8, {4, 64})}},
       {},
       "codes in layout 'plain' need scale"},
      {"dequantise", with("scale", f32({4})), {}, "scale f32[4] must have the axes of codes"},
      {"dequantise",
       with("scale", f32({4, 3})),
       {},
       "groups have a multiple of 32 columns, not 22"},
      {"dequantise", one, {{"group_size", std::int64_t{64}}}, "scale f32[4, 2] must be f32[4, 1]"},
      {"dequantise",
       with("zero_point", codes(DType::kU4, {4, 2})),
       {},
       "zero_point u4[4, 2] must have the dtype of codes, u8"},
      {"dequantise",
       {{"codes", codes(DType::kI8, {4, 64})},
        {"scale", f32({4, 1})},
        {"zero_point", codes(DType::kU8, {4, 1})}},
       {},
       "zero_point u8[4, 1] must have the dtype of codes, i8"},
  };
  for (const Row& row : rows) {
    try {
      (void)problem_of(row.operation, row.specs, row.options);
      FAIL() << "not refused: " << row.message;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
}

// By the host and by what processors there are through OpenCL and Vulkan.
class QuantiseDevices : public ::testing::Test {
 protected:
  static std::vector<Context> contexts() {
    std::vector<Context> list;
    for (const DeviceInfo& device : probe_devices().devices) {
      if (is_cpu(device.profile))
        list.push_back(
            Context::open({.device = std::to_string(device.index), .cache_directory = ""}));
    }
    return list;
  }
};

// Numbers halfway between codes, of a block whose scale is 1, and a block of zeros: as ggml has
// them, by hand.
TEST_F(QuantiseDevices, BlocksOfGgmlRoundAsItDoes) {
  std::vector<float> input(64, 0);
  const auto bytes_of = [&](const Context& context, WeightLayout layout) {
    const Quantised from =
        quantise(context, context.upload(input, {2, 32}), DType::kU8, {.layout = layout});
    EXPECT_THAT(context.download<float>(from.scale), ElementsAre(1, 0));
    const Tensor back = dequantise(context, {.codes = from.codes, .scale = {}, .zero_point = {}},
                                   DType::kF32, {.layout = layout});
    EXPECT_EQ(back.shape(), (Shape{2, 32}));
    EXPECT_EQ(context.download<float>(back)[0], input[0]);
    return context.download<std::uint8_t>(from.codes);
  };
  for (const Context& context : contexts()) {
    const std::vector<float> halves{127, 0.5F, 1.5F, 2.5F, -0.5F, -2.5F, 0.499F, -127};
    std::ranges::copy(halves, input.begin());
    std::vector<std::uint8_t> expected(68, 0);
    // A half of 1 is 0x3c00.
    const std::vector<std::uint8_t> bytes{0, 0x3c, 127, 1, 2, 3, 255, 253, 0, 129};
    std::ranges::copy(bytes, expected.begin());
    EXPECT_EQ(bytes_of(context, WeightLayout::kQ8_0), expected);

    const std::vector<float> lows{-8, 0.5F, -0.5F, 7, 7.75F, -7.5F, 0.499F, 8};
    std::ranges::copy(lows, input.begin());
    std::ranges::copy(lows, input.begin() + 16);
    expected.assign(36, 0x88);
    const std::vector<std::uint8_t> codes{0, 0x3c, 0x00, 0x99, 0x88, 0xff, 0xff, 0x11, 0x88, 0xff};
    std::ranges::copy(codes, expected.begin());
    expected[18] = 0;
    expected[19] = 0x80;  // of zeros the scale is -0
    EXPECT_EQ(bytes_of(context, WeightLayout::kQ4_0), expected);
    std::ranges::fill(input, 0.0F);
  }
}

// All bits of halves and bfloat16, in rows whose scale is a power of 2: what the code is follows
// from the number alone.
TEST_F(QuantiseDevices, RoundEveryNumberOf16Bits) {
  constexpr std::size_t kRow = 64;
  for (const Context& context : contexts()) {
    for (const bool half : {true, false}) {
      std::vector<std::uint16_t> bits;
      for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
        // The first of a row is 127: with it, no smaller number moves the scale from 1.
        if (bits.size() % kRow == 0)
          bits.push_back(half ? to_half_bits(127) : to_bfloat16_bits(127));
        const float x = half ? from_half_bits(static_cast<std::uint16_t>(pattern))
                             : from_bfloat16_bits(static_cast<std::uint16_t>(pattern));
        if (std::fabs(x) > 127) continue;  // changes its row's scale; NaN does not
        bits.push_back(static_cast<std::uint16_t>(pattern));
      }
      while (bits.size() % kRow != 0) bits.push_back(0);
      const Shape shape{static_cast<std::int64_t>(bits.size() / kRow), kRow};
      const Tensor input = context.upload_bytes(std::as_bytes(std::span(bits)),
                                                half ? DType::kF16 : DType::kBF16, shape);
      const Quantised result = quantise(context, input, DType::kI8);
      const auto codes = context.download<std::int8_t>(result.codes);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < bits.size(); ++i) {
        const float x = half ? from_half_bits(bits[i]) : from_bfloat16_bits(bits[i]);
        const double expected = std::isnan(x) ? 0 : std::nearbyint(double{x});
        wrong += codes[i] == expected ? 0 : 1;
      }
      EXPECT_EQ(wrong, 0U) << context.device().name << (half ? " f16" : " bf16");
    }
  }
}

// All codes, by scales of which one is hostile.
TEST_F(QuantiseDevices, DequantiseEveryCode) {
  const float scales[] = {1, -0.37F, 0, std::numeric_limits<float>::infinity(), std::nanf("")};
  for (const Context& context : contexts()) {
    for (const DType dtype :
         {DType::kI8, DType::kU8, DType::kI4, DType::kU4, DType::kE4M3FN, DType::kE5M2}) {
      std::vector<std::uint8_t> bytes(5 * 256);
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
      const std::int64_t columns = is_packed(dtype) ? 512 : 256;
      const TensorSpec spec = TensorSpec::contiguous(dtype, {5, columns});
      const Tensor codes = context.upload_bytes(std::as_bytes(std::span(bytes)), dtype, spec.shape);
      const Tensor scale = context.upload(std::vector<float>(scales, scales + 5), {5, 1});
      const auto output = context.download<float>(dequantise(context, {codes, scale, {}}));
      const HostTensor host{.spec = spec, .data = reinterpret_cast<std::byte*>(bytes.data())};
      const std::vector<double> numbers = host.read();
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const float expected =
            static_cast<float>(numbers[i]) * scales[i / static_cast<std::size_t>(columns)];
        const bool same = std::isnan(expected) ? std::isnan(output[i]) : output[i] == expected;
        wrong += same ? 0 : 1;
      }
      EXPECT_EQ(wrong, 0U) << context.device().name << " " << to_string(dtype);
    }
  }
}

// Of every case, one without rows among them, on GPUs that nobody here has.
TEST(Quantise, HasCutsForEveryCaseOnGpus) {
  for (const char* const name : {"quantise", "dequantise"}) {
    const Operation& operation = find_operation(name);
    for (const Case& from : operation.workload.cases(DType::kF32)) {
      const bool plain = !from.options.contains("layout");
      const Variant& variant = *operation.find_variant(plain ? "blocks" : "gguf");
      std::vector<bool> requested;
      for (std::size_t slot = 0; slot < operation.operands.size(); ++slot) {
        const bool given = slot < from.operands.size() && from.operands[slot].has_value();
        requested.push_back(given && is_written(operation.operands[slot].role));
      }
      const Problem problem = make_problem(operation, from.operands, from.options, requested);
      for (const char* const device : {"h200_opencl", "h200_vulkan"}) {
        const DeviceProfile profile = testing::load_profile(device);
        const std::vector<Config> configs = variant.space(problem, profile);
        EXPECT_FALSE(configs.empty());
        for (const Config& config : configs) {
          EXPECT_EQ(variant.rejects(problem, config, profile), std::nullopt) << from.name;
          const bool empty = problem.spec(0).elements() == 0;
          EXPECT_EQ(variant.passes[0].groups(problem, config).x == 0, empty) << from.name;
        }
      }
    }
  }
}

TEST(Quantise, MakesScalesAndZeroPoints) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor input = context.upload(std::vector<float>{-1, 0, 2, 4, 0, 0, 0, 0}, {2, 4});
  const Quantised u8 = quantise(context, input, DType::kU8);
  EXPECT_THAT(context.download<float>(u8.scale), ElementsAre(5.0F / 255, 1));
  EXPECT_THAT(context.download<std::uint8_t>(u8.zero_point), ElementsAre(51, 0));
  EXPECT_THAT(context.download<std::uint8_t>(u8.codes), ElementsAre(0, 51, 153, 255, 0, 0, 0, 0));
  const Quantised i8 = quantise(context, input, DType::kI8);
  EXPECT_FALSE(i8.zero_point);
  EXPECT_THAT(context.download<float>(i8.scale), ElementsAre(4.0F / 127, 1));
  EXPECT_THAT(context.download<std::int8_t>(i8.codes), ElementsAre(-32, 0, 64, 127, 0, 0, 0, 0));
  const Quantised dynamic = quantise(context, input, DType::kI8, {.dynamic = true});
  EXPECT_THAT(context.download<float>(dynamic.scale), ElementsAre(127.0F / 4.000001F, 1));
  EXPECT_THAT(context.download<float>(dequantise(context, u8)),
              ElementsAre(-1, 0, 2, 4, 0, 0, 0, 0));
}

}  // namespace
}  // namespace tessera
