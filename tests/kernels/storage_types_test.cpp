// SPDX-License-Identifier: Apache-2.0
// Conversions of the storage types over all bit patterns, on the host and on devices; and errors
// that kernels raise.
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/glsl.hpp"
#include "tessera/record.hpp"
#include "tile_test.hpp"

namespace tessera::device {
namespace {

// A format by its definition: value = sign 2^(exponent - bias) 1.mantissa.
struct Format {
  DType dtype;
  int mantissa, bias;
  std::uint32_t largest;  // bits of the largest number
};
constexpr Format kE4M3{DType::kE4M3FN, 3, 7, 0x7E}, kE5M2{DType::kE5M2, 2, 15, 0x7B};

double number_of(const Format& format, std::uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> format.mantissa);
  const double fraction =
      std::ldexp(static_cast<double>(magnitude % (1U << format.mantissa)), -format.mantissa);
  return exponent == 0 ? std::ldexp(fraction, 1 - format.bias)
                       : std::ldexp(1 + fraction, exponent - format.bias);
}

// The nearest number, of two the even one, by looking at all of them.
std::uint32_t nearest(const Format& format, double value) {
  const double magnitude = std::fabs(value);
  std::uint32_t best = 0;
  while (best < format.largest) {
    const double here = magnitude - number_of(format, best);
    const double next = number_of(format, best + 1) - magnitude;
    if (here < next || (here == next && best % 2 == 0)) break;
    ++best;
  }
  return best | (std::signbit(value) ? 0x80U : 0U);
}

float from_bits(DType dtype, std::uint8_t bits) {
  return dtype == DType::kE4M3FN ? from_e4m3fn_bits(bits) : from_e5m2_bits(bits);
}
std::uint8_t to_bits(DType dtype, double value) {
  return dtype == DType::kE4M3FN ? to_e4m3fn_bits(value) : to_e5m2_bits(value);
}

// All upper halves of floats with lower halves at the edges of what decides a rounding: ties of all
// formats lie in the upper one.
std::vector<float> telling_floats() {
  std::vector<float> floats;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0U, 1U, 0x8000U, 0xFFFFU})
      floats.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  return floats;
}

TEST(StorageTypes, EightBitFloatsAreThoseOfTheirDefinition) {
  for (const Format& format : {kE4M3, kE5M2}) {
    for (std::uint32_t bits = 0; bits < 256; ++bits) {
      const std::uint32_t magnitude = bits & 0x7F;
      const float got = from_bits(format.dtype, static_cast<std::uint8_t>(bits));
      if (magnitude <= format.largest) {
        const double number = number_of(format, magnitude);
        EXPECT_EQ(got, bits > 0x7F ? -number : number) << bits;
        EXPECT_EQ(std::signbit(got), bits > 0x7F) << bits;
        EXPECT_EQ(to_bits(format.dtype, double{got}), bits);
      } else if (format.dtype == DType::kE5M2 && magnitude == 0x7C) {
        EXPECT_TRUE(std::isinf(got) && std::signbit(got) == (bits > 0x7F)) << bits;
      } else {
        EXPECT_TRUE(std::isnan(got)) << bits;
      }
    }
  }
  EXPECT_EQ(from_e4m3fn_bits(0x7E), 448.0F);
  EXPECT_EQ(from_e5m2_bits(0x7B), 57344.0F);
  EXPECT_EQ(to_e4m3fn_bits(464), 0x7E);
  EXPECT_EQ(to_e4m3fn_bits(std::nan("")), 0x7F);
  EXPECT_EQ(to_e4m3fn_bits(-std::numeric_limits<double>::infinity()), 0xFE);
  EXPECT_EQ(to_e5m2_bits(std::numeric_limits<double>::infinity()), 0x7B);
  EXPECT_EQ(to_e5m2_bits(61440), 0x7B);
}

// Numbers between two neighbours, their middle and its neighbours.
TEST(StorageTypes, EightBitFloatsRoundOnceToNearestEven) {
  for (const Format& format : {kE4M3, kE5M2}) {
    for (std::uint32_t magnitude = 0; magnitude < format.largest; ++magnitude) {
      const double low = number_of(format, magnitude), high = number_of(format, magnitude + 1);
      const double middle = (low + high) / 2;
      for (const double value : {low, std::nextafter(middle, 0.0), middle,
                                 std::nextafter(middle, high), high, -middle, 2 * high}) {
        EXPECT_EQ(to_bits(format.dtype, value), nearest(format, value)) << value;
      }
    }
  }
}

// What a tensor in host memory holds: every pattern is read and written back as it was.
TEST(StorageTypes, HostTensorsKeepAllPatterns) {
  for (const DType dtype : {DType::kI8, DType::kU8, DType::kI4, DType::kU4, DType::kE4M3FN,
                            DType::kE5M2, DType::kF16, DType::kBF16}) {
    const std::int64_t patterns = std::int64_t{1} << std::max<std::size_t>(bits_of(dtype), 8);
    const std::int64_t elements =
        is_packed(dtype) ? 2 * patterns : patterns;  // of packed ones all pairs
    std::vector<std::byte> memory(static_cast<std::size_t>(patterns) *
                                  std::max<std::size_t>(bits_of(dtype) / 8, 1));
    for (std::size_t i = 0; i < memory.size(); ++i)
      memory[i] = static_cast<std::byte>(memory.size() > 256 ? i / 2 >> (i % 2 * 8) : i);
    HostTensor tensor{TensorSpec::contiguous(dtype, {elements}), memory.data()};
    const std::vector<double> values = tensor.read();
    std::vector<std::byte> again(memory.size());
    HostTensor copy{tensor.spec, again.data()};
    copy.write(values);
    const std::vector<double> same = copy.read();
    for (std::size_t i = 0; i < values.size(); ++i) {
      // Stores saturate; NaN has one pattern.
      const bool is_infinite = std::isinf(values[i]) && bits_of(dtype) == 8;
      if (!std::isnan(values[i]) && !is_infinite) {
        EXPECT_EQ(same[i], values[i]) << to_string(dtype);
      }
    }
    if (dtype == DType::kI8 || dtype == DType::kU8 || is_packed(dtype)) {
      EXPECT_EQ(again, memory);
    }
  }
}

class StorageTypesOnDevices : public Tiles {
 protected:
  // What kernels read and store, against the host.
  void compare(ProgramRequest request) {
    const std::vector<float> floats = telling_floats();
    const auto count = static_cast<std::uint32_t>(floats.size());
    std::vector<std::byte> bytes(256);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    const BufferPtr from = output(2048), to = device_->create_buffer(std::uint64_t{count} * 5),
                    errors = device_->create_buffer(16);
    stream_->fill(*errors, 0, 16, 0xFF);
    const std::array<std::uint32_t, 2> arguments{2, count};
    request.group = {64, 1, 1};
    request.bindings = 5;
    request.argument_bytes = sizeof arguments;
    run(request, {buffer(bytes), buffer(std::as_bytes(std::span(floats))), from, to, errors},
        std::as_bytes(std::span(arguments)), {(count + 63) / 64, 1, 1});

    const Matrix read_back = read(from, 1);
    std::vector<std::byte> stored(to->size());
    stream_->download(*to, 0, stored);
    std::size_t first = 0, first_stored = 0;
    for (const DType dtype :
         {DType::kI8, DType::kU8, DType::kE4M3FN, DType::kE5M2, DType::kI4, DType::kU4}) {
      const std::int64_t patterns = is_packed(dtype) ? 512 : 256;
      const std::vector<double> wanted =
          HostTensor{TensorSpec::contiguous(dtype, {patterns}), bytes.data()}.read();
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const double got = read_back.values[first + i];
        EXPECT_TRUE(got == wanted[i] || (std::isnan(got) && std::isnan(wanted[i])))
            << to_string(dtype) << " pattern " << i << " is " << got << ", not " << wanted[i];
      }
      first += wanted.size();
      const std::size_t size = std::size_t{count} * bits_of(dtype) / 8;
      std::vector<std::byte> right(size);
      HostTensor{TensorSpec::contiguous(dtype, {count}), right.data()}.write(
          std::vector<double>(floats.begin(), floats.end()));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < size; ++i) wrong += right[i] != stored[first_stored + i] ? 1 : 0;
      EXPECT_EQ(wrong, 0U) << to_string(dtype);
      first_stored += size;
    }
    std::array<std::uint32_t, 4> words{};
    stream_->download(*errors, 0, std::as_writable_bytes(std::span(words)));
    EXPECT_EQ(words, (std::array<std::uint32_t, 4>{~0U, ~0U, ~0U, 13}));
  }
};

TEST_F(StorageTypesOnDevices, OpenCLConvertsAsTheHost) {
  open(probe_opencl());
  if (IsSkipped()) return;
  ProgramRequest request;
  request.name = "tests/storage_types.cl";
  request.entry = "storage_types";
  request.source = kernel_text("storage_types.cl", {"cl_kernels", "src"});
  compare(std::move(request));
}

TEST_F(StorageTypesOnDevices, VulkanConvertsAsTheHost) {
  if (!runtime::can_compile_glsl())
    GTEST_SKIP() << "this build has no libshaderc, which compiles the kernel of this test";
  open(probe_vulkan());
  if (IsSkipped()) return;
  const std::vector<std::uint32_t> words = runtime::compile_glsl(
      "tests/storage_types.comp", kernel_text("storage_types.comp", {"shaders", "src"}), {});
  ProgramRequest request;
  request.name = "tests/storage_types.comp";
  request.entry = "main";
  request.spirv = words;
  compare(std::move(request));
}

}  // namespace
}  // namespace tessera::device
