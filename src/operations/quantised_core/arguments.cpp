// SPDX-License-Identifier: Apache-2.0
// A call as kernels take it.
#include <algorithm>

#include "operations/common/launch.hpp"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {
namespace {

abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

}  // namespace

std::int64_t row_step(const TensorSpec& spec) {
  std::int64_t step = 0, extent = 1;
  for (std::size_t axis = spec.shape.size() - 1; axis-- > 0;) {
    if (spec.shape[axis] == 1) continue;
    if (extent == 1) {
      step = spec.strides[axis];
    } else if (spec.strides[axis] != step * extent) {
      return -1;
    }
    extent *= spec.shape[axis];
  }
  return step;
}

std::uint32_t format_of(const Problem& problem) {
  const auto& call = problem.as<QuantisedProblem>();
  if (call.layout == Layout::kQ8_0) return QUANT_Q8_0;
  if (call.layout == Layout::kQ4_0) return QUANT_Q4_0;
  return is_packed(problem.spec(kWeight).dtype) ? QUANT_NIBBLES : QUANT_BYTES;
}

abi::QuantArgs weight_arguments(const Problem& problem) {
  const auto& call = problem.as<QuantisedProblem>();
  const TensorSpec& weight = problem.spec(kWeight);
  const std::int64_t bits = static_cast<std::int64_t>(bits_of(weight.dtype));
  abi::QuantArgs args{};
  args.m = narrow(call.m);
  args.n = narrow(call.matrices * call.n);  // rows of all matrices
  args.k = narrow(call.k);
  args.format = format_of(problem);
  args.group = narrow(std::max<std::int64_t>(1, (call.group + QUANT_CHUNK - 1) / QUANT_CHUNK));
  args.weight_offset = narrow(weight.offset * bits / 8);
  args.weight_row = narrow(row_step(weight) * bits / 8);
  if (problem.has(kScale)) {
    args.scale_offset = narrow(problem.spec(kScale).offset);
    args.scale_row = narrow(row_step(problem.spec(kScale)));
    args.scale_type = dtype_axis(problem.spec(kScale).dtype);
  }
  if (problem.has(kZero)) {
    args.zero_offset = narrow(problem.spec(kZero).offset);
    args.zero_row = narrow(row_step(problem.spec(kZero)));
  }
  const auto mark = [&](bool holds, abi::u32 feature) { args.features |= holds ? feature : 0U; };
  mark(call.layout == Layout::kQ8_0 || weight.dtype == DType::kI8 || weight.dtype == DType::kI4,
       QUANT_SIGNED);
  mark(problem.has(kZero), QUANT_ZEROS);
  mark(call.layout == Layout::kPlain && args.weight_offset % 16 == 0 && args.weight_row % 16 == 0,
       QUANT_ALIGNED);
  return args;
}

abi::QuantArgs input_arguments(const Problem& problem) {
  const auto& call = problem.as<QuantisedProblem>();
  const TensorSpec &input = problem.spec(kInput), &scale = problem.spec(kInputScale);
  abi::QuantArgs args{};
  args.n = narrow(call.m);
  args.k = narrow(call.k);
  args.features = QUANT_SIGNED;
  args.format = QUANT_BYTES;
  args.group = narrow(std::max<std::int64_t>(1, (call.k + QUANT_CHUNK - 1) / QUANT_CHUNK));
  args.weight_offset = narrow(input.offset);
  args.weight_row = narrow(row_step(input));
  args.scale_offset = narrow(scale.offset);
  args.scale_row = narrow(row_step(scale));
  args.scale_type = dtype_axis(scale.dtype);
  // Behind the weights.
  args.output_offset = narrow(call.matrices * call.n * call.k);
  return args;
}

abi::QuantArgs arguments_of(const Problem& problem) {
  const TensorSpec &input = problem.spec(kInput), &output = problem.spec(kOutput);
  abi::QuantArgs args = weight_arguments(problem);
  args.input_offset = narrow(input.offset);
  args.input_row = narrow(row_step(input));
  args.output_offset = narrow(output.offset);
  args.output_row = narrow(row_step(output));
  args.output_type = dtype_axis(output.dtype);
  const auto mark = [&](bool holds, abi::u32 feature) { args.features |= holds ? feature : 0U; };
  if (problem.has(kInputScale)) {
    const TensorSpec& scale = problem.spec(kInputScale);
    args.input_scale_offset = narrow(scale.offset);
    args.input_scale_row = narrow(row_step(scale));
  }
  mark(problem.has(kInputScale), QUANT_INPUT_SCALE);
  mark(args.input_offset % 4 == 0 && args.input_row % 4 == 0, QUANT_VECTORS);
  return args;
}

std::vector<std::byte> product_arguments(const Problem& problem, const Config& /*config*/) {
  return argument_bytes(arguments_of(problem));
}

std::uint32_t group_of(const Problem& problem) {
  if (problem.spec(kScale).shape.back() == 1) return 0;
  return static_cast<std::uint32_t>(problem.as<QuantisedProblem>().group / QUANT_CHUNK);
}

std::vector<Define> weight_constants(const Problem& problem) {
  return {{"FORMAT", format_of(problem)},
          {"GROUP", group_of(problem)},
          {"SCALE_TYPE", dtype_axis(problem.spec(kScale).dtype)},
          {"ZEROS", problem.has(kZero) ? 1U : 0U}};
}

Dim3 groups_of_tiles(const Problem& problem, std::uint32_t rows, std::uint32_t columns) {
  constexpr std::int64_t kMostGroups = 65535;  // of a launch along an axis
  const auto& call = problem.as<QuantisedProblem>();
  const std::int64_t tiles = std::int64_t{ceil_div(call.m, rows)} * ceil_div(call.n, columns);
  return Dim3{static_cast<std::uint32_t>(std::min(tiles, kMostGroups))};
}

Refusal rejects_rows_apart(const Problem& problem, std::span<const std::size_t> slots) {
  for (const std::size_t slot : slots) {
    if (!problem.has(slot)) continue;
    const TensorSpec& spec = problem.spec(slot);
    if ((spec.shape.back() > 1 && spec.strides.back() != 1) || row_step(spec) < 0)
      return "takes contiguous rows at equal distances, and " +
             problem.operation->operands[slot].name + " " + spec.to_string() + " has none";
  }
  return std::nullopt;
}

Refusal rejects_quantised(const Problem& problem, const DeviceProfile& profile) {
  if (problem.as<QuantisedProblem>().is_grouped) return "takes one matrix of weights";
  if (Refusal no = rejects_long_operands(problem, profile, {})) return no;
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  constexpr std::size_t kSlots[] = {kInput, kWeight, kScale, kZero, kInputScale, kOutput};
  if (Refusal no = rejects_rows_apart(problem, kSlots)) return no;
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const auto& call = problem.as<QuantisedProblem>();
  if (call.m >= kMost || call.n >= kMost || call.k >= kMost ||
      (call.n > 0 && call.m > kMost / call.n))
    return "counts elements to 2^31";
  return std::nullopt;
}

Refusal rejects_blocks_and_codes(const Problem& problem) {
  if (problem.as<QuantisedProblem>().layout != Layout::kPlain)
    return "takes plain layouts, and no blocks with scales";
  if (problem.has(kInputScale)) return "takes no codes as input";
  return std::nullopt;
}

Refusal rejects_rows_off_vectors(const Problem& problem) {
  const abi::QuantArgs args = arguments_of(problem);
  const std::uint32_t per_vector = problem.spec(kInput).dtype == DType::kF32 ? 4 : 8;
  if ((args.features & QUANT_ALIGNED) == 0 || args.k % QUANT_CHUNK != 0 ||
      args.input_offset % per_vector != 0 || args.input_row % per_vector != 0)
    return "takes rows of input and of weights that lie at multiples of 16 bytes, and terms that "
           "are a multiple of 32";
  return std::nullopt;
}

}  // namespace tessera::operations::quantised
