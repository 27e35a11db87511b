// SPDX-License-Identifier: Apache-2.0
// Made-up calls of quantise and dequantise, and what they must give.
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "operations/common/cases.hpp"
#include "operations/common/numerics.hpp"
#include "operations/quantise/problem.hpp"

namespace tessera::operations::quantised {
namespace {

struct CodesCase {
  const char* name;
  const char* why;
  const char* codes;
  Shape shape{};
  std::int64_t group = 0, group_rows = 1;  // 0: a row
  bool dynamic = false, strided = false;
  const char* data = "normal";
  const char* layout = "plain";
};

Layout layout_of(const CodesCase& from) {
  const std::string layout = from.layout;
  return layout == "q8_0" ? Layout::kQ8_0 : layout == "q4_0" ? Layout::kQ4_0 : Layout::kPlain;
}

CodesCase in_blocks(const char* name, const char* why, Shape shape, bool strided = false,
                    const char* data = "normal") {
  return {.name = name,
          .why = why,
          .codes = "u8",
          .shape = std::move(shape),
          .group = QUANT_CHUNK,
          .strided = strided,
          .data = data,
          .layout = std::string(name).starts_with("q8_0") ? "q8_0" : "q4_0"};
}

const char* const kMiddles =
    "floats beside the middles between codes: a quotient's last bit counts";
CodesCase in_middles(const char* name, const char* codes, Shape shape) {
  return {.name = name,
          .why = kMiddles,
          .codes = codes,
          .shape = std::move(shape),
          .group = QUANT_CHUNK,
          .data = "middles"};
}

std::vector<CodesCase> codes_cases() {
  return {{"i8_rows", "a scale for each row", "i8", {5, 77}},
          {"i8_groups", "groups, the last of them shorter", "i8", {7, 200}, 64},
          {"i4_groups", "half bytes", "i4", {6, 96}, 32},
          {"u8_groups", "zero points", "u8", {5, 160}, 32},
          {"u4_groups", "zero points that share bytes, an odd number of them", "u4", {7, 94}, 32},
          {"e4m3fn_128", "activations, a scale for each 128", "e4m3fn", {3, 300}, 128},
          {"e5m2_rows", "the other float of 8 bits", "e5m2", {4, 40}},
          {"e4m3fn_square", "weights, squares of 128 by 128", "e4m3fn", {130, 256}, 128, 128},
          {"dynamic", "scales that multiply, squares", "i8", {2, 40, 136}, 128, 32, true},
          {"u8_batches", "blocks end with a batch", "u8", {3, 10, 64}, 64, 4},
          {"one_axis", "a row without others", "i4", {64}},
          {"gaps",
           "unused memory between rows, eights that are not aligned",
           "i8",
           {5, 3, 70},
           64,
           2,
           false,
           true},
          {"gaps_aligned", "the same with whole words", "u4", {4, 64}, 32, 1, false, true},
          {"i8_wild",
           "zeros, NaN, infinities and numbers beyond the normal ones",
           "i8",
           {9, 64},
           32,
           1,
           false,
           false,
           "wild"},
          {"u4_wild", "the same with zero points", "u4", {9, 64}, 32, 1, false, false, "wild"},
          {"e4m3fn_wild",
           "the same as floats of 8 bits",
           "e4m3fn",
           {9, 64},
           32,
           1,
           false,
           false,
           "wild"},
          {"dynamic_wild",
           "the same with scales that multiply",
           "i8",
           {9, 64},
           32,
           1,
           true,
           false,
           "wild"},
          in_middles("i8_middles", "i8", {48, 128}),
          in_middles("u8_middles", "u8", {48, 128}),
          in_middles("e4m3fn_middles", "e4m3fn", {48, 128}),
          {"nothing", "no rows", "u8", {0, 64}, 32},
          in_blocks("q8_0", "GGUF's blocks", {5, 96}),
          in_blocks("q4_0", "GGUF's blocks of half bytes", {3, 2, 64}),
          in_blocks("q8_0_gaps", "unused memory between rows", {2, 3, 64}, true),
          in_blocks("q8_0_wild", "zeros, NaN, infinities, and halves beyond their range", {9, 32},
                    false, "wild"),
          in_blocks("q4_0_wild", "the same in half bytes", {9, 32}, false, "wild"),
          in_blocks("q8_0_middles", kMiddles, {48, 128}, false, "middles"),
          in_blocks("q4_0_middles", kMiddles, {48, 128}, false, "middles")};
}

TensorSpec codes_layout(DType dtype, const CodesCase& from) {
  Shape shape = from.shape;
  if (dtype == DType::kU8 && layout_of(from) != Layout::kPlain)
    shape.back() = shape.back() / QUANT_CHUNK * block_bytes(layout_of(from));
  if (!from.strided) return TensorSpec::contiguous(dtype, shape);
  // Rows of 8 n elements keep eights aligned.
  const std::int64_t gap = from.shape.back() % 8 == 0 ? 8 : 6;
  return strided_view(dtype, shape, from.shape.size() == 3 ? Shape{0, 1} : Shape{0}, gap, gap);
}

Shape codes_scales(const CodesCase& from) {
  Shape shape = from.shape;
  const auto parts = [](std::int64_t extent, std::int64_t each) {
    return (extent + each - 1) / each;
  };
  shape.back() = from.group == 0 ? 1 : parts(shape.back(), from.group);
  if (shape.size() > 1) shape[shape.size() - 2] = parts(shape[shape.size() - 2], from.group_rows);
  return shape;
}

Case make_codes_case(const CodesSlots& slots, DType floats, const CodesCase& from) {
  Case result{.name = from.name, .why = from.why, .data = from.data};
  const DType codes = parse_dtype(from.codes);
  result.operands.resize(4);
  const bool forward = slots.floats == 0;
  if (forward || from.strided) result.operands[slots.floats] = codes_layout(floats, from);
  if (!forward || from.strided) result.operands[slots.codes] = codes_layout(codes, from);
  const TensorSpec scales = TensorSpec::contiguous(DType::kF32, codes_scales(from));
  const bool plain = layout_of(from) == Layout::kPlain;
  if (!forward && plain) result.operands[slots.scale] = scales;
  if (!plain) {
    result.options["layout"] = std::string(from.layout);
    result.options["dtype"] = std::string(forward ? "i8" : to_string(floats));
    return result;
  }
  if (is_unsigned_code(codes))
    result.operands[slots.zero] = TensorSpec::contiguous(codes, scales.shape);
  if (from.group != 0) result.options["group_size"] = from.group;
  if (from.group_rows != 1) result.options["group_rows"] = from.group_rows;
  if (from.dynamic) result.options["dynamic"] = true;
  result.options["dtype"] = std::string(forward ? from.codes : to_string(floats));
  return result;
}

Workload codes_workload(const CodesSlots& slots) {
  Workload workload;
  workload.cases = [slots](DType dtype) {
    std::vector<Case> cases;
    for (const CodesCase& from : codes_cases())
      cases.push_back(make_codes_case(slots, dtype, from));
    return cases;
  };
  workload.benchmarks = [slots](DType dtype) {
    std::vector<Case> cases;
    for (const CodesCase& from :
         {CodesCase{"i8_groups", "weights in 8 bits", "i8", {4096, 4096}, 128},
          CodesCase{"i4_groups", "weights in 4 bits", "i4", {4096, 4096}, 128},
          CodesCase{"e4m3fn_128", "activations", "e4m3fn", {4096, 4096}, 128},
          CodesCase{"e4m3fn_square", "weights", "e4m3fn", {4096, 4096}, 128, 128},
          in_blocks("q8_0", "GGUF's blocks", {4096, 4096}),
          in_blocks("q4_0", "GGUF's blocks of half bytes", {4096, 4096})})
      cases.push_back(make_codes_case(slots, dtype, from));
    return cases;
  };
  return workload;
}

void fill_quantise(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CodesProblem>();
  std::mt19937_64 generator(shape.seed * 1000003 + 7);
  std::normal_distribution<float> normal;
  std::vector<double> values(static_cast<std::size_t>(problem.spec(call.slots.floats).elements()));
  for (double& value : values) value = normal(generator);
  if (shape.data == "wild") {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t block = i / 32 % 9;
      if (block == 0) values[i] = 0;
      if (block == 1 && i % 5 == 0) values[i] = std::nan("");
      if (block == 2) values[i] = std::nan("");
      if (block == 3 && i % 32 == 4) values[i] = kInfinity;
      if (block == 4 && i % 32 == 9) values[i] = -kInfinity;
      if (block == 5) values[i] *= 1e-41;
      if (block == 6) values[i] = std::fabs(values[i]);
      if (block == 7) values[i] = -std::fabs(values[i]);
      if (block == 8) values[i] *= 1e4;
    }
  }
  if (shape.data == "middles") {
    const bool floats = call.codes == DType::kE4M3FN || call.codes == DType::kE5M2;
    const bool half_bytes = call.layout == Layout::kQ4_0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double peak = 1 + std::fmod(static_cast<double>(i / 32) * 0.61803398875, 1.0);
      const auto code = static_cast<double>(generator() % (half_bytes ? 8 : 127)) + 0.5;
      const double most = half_bytes                     ? 8
                          : call.layout == Layout::kQ8_0 ? 127
                                                         : largest_code(call.codes);
      // Middles between floats of 8 bits have a bit more than these.
      const double middle = floats ? std::ldexp(8.5 + std::floor(code / 16), 4) : code;
      values[i] = i % 32 == 0 ? peak : peak / most * middle * (i % 2 == 0 ? 1 : -1);
    }
  }
  tensors[call.slots.floats].write(values);
}

void fill_dequantise(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CodesProblem>();
  std::mt19937_64 generator(shape.seed * 1000003 + 11);
  const auto count = [&](std::size_t slot) {
    return static_cast<std::size_t>(problem.spec(slot).elements());
  };
  // Any bits that stand for a number, the ends among them.
  const bool floats = call.codes == DType::kE4M3FN || call.codes == DType::kE5M2;
  const double most = largest_code(call.codes),
               least = is_unsigned_code(call.codes) ? 0 : -most - 1;
  const auto random_codes = [&](std::size_t slot) {
    std::uniform_real_distribution<double> any(floats ? -most : least, most);
    std::vector<double> values(count(slot));
    for (double& value : values) value = floats ? any(generator) : std::nearbyint(any(generator));
    tensors[slot].write(values);
  };
  random_codes(call.slots.codes);
  if (call.layout != Layout::kPlain) {
    // Halves of about 0.01; or any, but for those whose products no half holds.
    std::vector<double> bytes = tensors[call.slots.codes].read();
    for (std::size_t at = 1; at < bytes.size();
         at += static_cast<std::size_t>(block_bytes(call.layout))) {
      std::uint64_t high = generator() % 256;
      const bool is_number = (high & 0x7cU) != 0x7cU;
      if (shape.data != "wild") high = 0x20 + high % 4 + high / 128 * 128;
      if (is_number && (high & 0x7fU) > 0x58U) high -= 0x30U;
      bytes[at] = static_cast<double>(high);
    }
    tensors[call.slots.codes].write(bytes);
    return;
  }
  if (problem.has(call.slots.zero)) random_codes(call.slots.zero);
  std::normal_distribution<float> normal;
  std::vector<double> scales(count(call.slots.scale));
  // Dynamic ones divide.
  for (double& scale : scales)
    scale = call.is_dynamic ? 50 + 10 * std::fabs(normal(generator)) : 0.01 * normal(generator);
  if (shape.data == "wild") {
    const double hostile[] = {0, std::nan(""), std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(), -0.5};
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = hostile[i % 5];
  }
  tensors[call.slots.scale].write(scales);
}

std::vector<Expectation> expect_quantise(const Problem& problem, std::span<HostTensor> tensors,
                                         const Arithmetic&, double /*max_flops*/) {
  const auto& call = problem.as<CodesProblem>();
  const std::vector<double> floats = tensors[call.slots.floats].read();
  std::vector<Expectation> expected;
  const auto add = [&](std::size_t slot, std::vector<double>& values,
                       std::vector<double> bounds = {}) {
    if (!problem.has(slot) || values.empty()) return;
    bounds.resize(values.size());  // 0: the same bits on every device
    expected.push_back(
        {.slot = slot, .elements = {}, .values = std::move(values), .bounds = std::move(bounds)});
  };
  if (call.layout != Layout::kPlain) {
    BlockCodes blocks = blocks_of(call, floats);
    add(call.slots.codes, blocks.bytes);
    add(call.slots.scale, blocks.scales);
    return expected;
  }
  Codes codes = codes_of(call, floats);
  add(call.slots.codes, codes.numbers, std::move(codes.bounds));
  add(call.slots.scale, codes.scales);
  add(call.slots.zero, codes.zeros);
  return expected;
}

}  // namespace

Workload quantise_workload() {
  Workload workload = codes_workload(quantise_slots());
  workload.fill = fill_quantise;
  workload.expect = expect_quantise;
  return workload;
}

Workload dequantise_workload() {
  Workload workload = codes_workload(dequantise_slots());
  workload.fill = fill_dequantise;
  return workload;
}

}  // namespace tessera::operations::quantised
