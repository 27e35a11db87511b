// SPDX-License-Identifier: Apache-2.0
#include "operations/ragged_page_attention_v3/scales.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "abi/storage.h"
#include "kernel/option_access.hpp"
#include "operations/attention_core/fused_args.h"
#include "operations/attention_core/launch.hpp"
#include "operations/common/codes.hpp"
#include "operations/common/numerics.hpp"
#include "operations/ragged_page_attention_v3/fused.hpp"

namespace tessera::operations::attention {
namespace {

std::optional<double> positive_option(const Problem& problem, const char* name) {
  const std::optional<double> value = kernel::number_option(problem, name);
  if (value && *value <= 0) kernel::bad_option(problem, name, "greater than 0");
  using Floats = std::numeric_limits<float>;  // kernels divide by one, and flush what is less
  if (value && (*value < double{Floats::min()} || *value > double{Floats::max()}))
    kernel::bad_option(problem, name, "a normal number in float");
  return value;
}

std::uint64_t bytes_of_queries(const Problem& problem) {
  constexpr std::uint64_t kAlignment = 64;
  if (!scales_of(problem).query) return 0;
  const TensorSpec& spec = problem.spec(kQueries);
  const auto bytes = static_cast<std::uint64_t>(spec.elements()) * bits_of(spec.dtype) / 8;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

abi::AttentionScaledRows rows_of(const TensorSpec& spec) {
  return {.offset = narrow(spec.offset),
          .stride_row = narrow(spec.strides[0]),
          .stride_head = narrow(spec.strides[1])};
}

void take_rows(abi::AttentionFusedArgs& args, const TensorSpec& from, const TensorSpec& to) {
  args.elements = narrow(from.elements());
  args.heads = narrow(from.shape[1]);
  args.dim = narrow(from.shape[2]);
  args.type = dtype_axis(from.dtype);
  args.divisor = args.factor = 1;
  args.most = std::numeric_limits<float>::infinity();
  args.from = rows_of(from);
  args.to = rows_of(to);
}

abi::AttentionFusedArgs begin_arguments(const Problem& problem) {
  abi::AttentionFusedArgs args{};
  const FusedScales scales = scales_of(problem);
  if (scales.query) {
    take_rows(args, problem.spec(kQueries), scaled_queries(problem).spec);
    const DType stored = problem.spec(kCache).dtype;
    args.divisor = static_cast<float>(*scales.query);
    if (is_code(stored)) {
      args.code = dtype_axis(stored);
    } else {
      args.most = static_cast<float>(largest_number(stored));
    }
  }
  if (scales.of_codes) {
    const TensorSpec pairs = scale_pairs(problem).spec;
    args.pairs = narrow(pairs.elements());
    args.pairs_offset = narrow(pairs.offset);
    args.key_scale = static_cast<float>(scales.key.value_or(1));
    args.value_scale = static_cast<float>(scales.value.value_or(1));
  }
  return args;
}

abi::AttentionFusedArgs output_arguments(const Problem& problem) {
  abi::AttentionFusedArgs args{};
  const TensorSpec& spec = problem.spec(kOutput);
  if (scales_of(problem).of_outputs() == 1) return args;
  take_rows(args, spec, spec);
  args.factor = static_cast<float>(scales_of(problem).of_outputs());
  return args;
}

// One program for all of a device's calls.
std::vector<Define> storage_axis(const Problem&, const DeviceProfile& profile) {
  return {{"STORAGE16", has(profile.features, Feature::kStorage16) ? 1U : 0U}};
}

Pass fused_pass(const char* name, std::vector<std::size_t> bindings,
                abi::AttentionFusedArgs (*arguments)(const Problem&)) {
  Pass pass = helper_pass("fused");
  pass.name = name;
  pass.axes = storage_axis;
  pass.constants = {};
  pass.bindings = std::move(bindings);
  pass.groups = [arguments](const Problem& problem, const Config&) {
    const abi::AttentionFusedArgs args = arguments(problem);
    return Dim3{ceil_div(std::max(args.elements, args.pairs), kHelperItems), 1, 1};
  };
  pass.args = [arguments](const Problem& problem, const Config&) {
    return argument_bytes(arguments(problem));
  };
  return pass;
}

// The nearest codes, and of floats what the storage type does not hold cut off.
void to_codes(std::vector<double>& values, DType stored) {
  const bool whole = stored == DType::kI8 || stored == DType::kI4;
  const double most = is_code(stored) ? largest_code(stored) : largest_number(stored);
  for (double& value : values) {
    if (std::isnan(value)) {
      value = whole ? 0 : value;
    } else {
      value = std::clamp(value, whole ? -most - 1 : -most, most);
    }
  }
  if (!is_code(stored)) return;
  std::vector<std::byte> bytes(values.size());
  HostTensor codes{.spec = TensorSpec::contiguous(stored, {std::ssize(values)}),
                   .data = bytes.data()};
  codes.write(values);
  values = codes.read();
}

}  // namespace

FusedScales scales_of(const Problem& problem) {
  return {.query = positive_option(problem, "q_scale"),
          .key = positive_option(problem, "k_scale"),
          .value = positive_option(problem, "v_scale"),
          .of_codes = is_code(problem.spec(kCache).dtype) && !problem.has(kScale)};
}

Place scaled_queries(const Problem& problem) {
  const TensorSpec& spec = problem.spec(kQueries);
  return {kScratch, TensorSpec::contiguous(spec.dtype, spec.shape)};
}

Place scale_pairs(const Problem& problem) {
  TensorSpec spec = TensorSpec::contiguous(DType::kF32, {1, 1, 2 * problem.spec(kKeys).shape[1]});
  spec.offset = static_cast<std::int64_t>(bytes_of_queries(problem) / sizeof(float));
  return {kScratch, std::move(spec)};
}

std::uint64_t scaled_bytes(const Problem& problem) {
  const std::uint64_t pairs =
      scales_of(problem).of_codes
          ? sizeof(float) * static_cast<std::uint64_t>(scale_pairs(problem).spec.elements())
          : 0;
  return bytes_of_queries(problem) + pairs;
}

Refusal rejects_far_scaled(const Problem& problem, const DeviceProfile& profile) {
  const FusedScales scales = scales_of(problem);
  Problem scaled = problem;
  if (!scales.query) scaled.operands[kQueries].reset();
  if (scales.of_outputs() == 1) scaled.operands[kOutput].reset();
  for (const std::size_t slot : {kKeys, kValues, kCache, kScale, kValueCache, kValueScale})
    scaled.operands[slot].reset();
  return rejects_long_operands(scaled, profile, {});
}

std::vector<std::byte> scaled_reference(const Problem& problem, std::span<HostTensor> tensors) {
  const FusedScales scales = scales_of(problem);
  std::vector<std::byte> scratch(scaled_bytes(problem));
  if (scales.query) {
    std::vector<double> values = tensors[kQueries].read();
    for (double& value : values) value /= static_cast<float>(*scales.query);
    to_codes(values, problem.spec(kCache).dtype);
    HostTensor{.spec = scaled_queries(problem).spec, .data = scratch.data()}.write(values);
  }
  if (scales.of_codes) {
    const TensorSpec spec = scale_pairs(problem).spec;
    std::vector<double> values(static_cast<std::size_t>(spec.elements()));
    for (std::size_t n = 0; n < values.size(); ++n)
      values[n] = (n % 2 == 0 ? scales.key : scales.value).value_or(1);
    HostTensor{.spec = spec, .data = scratch.data()}.write(values);
  }
  return scratch;
}

void scale_outputs(const Problem& problem, std::span<HostTensor> tensors) {
  const auto factor = static_cast<float>(scales_of(problem).of_outputs());
  if (factor == 1) return;
  std::vector<double> values = tensors[kOutput].read();
  for (double& value : values) value *= factor;
  tensors[kOutput].write(values);
}

std::vector<Pass> fused_passes() {
  return list_of(fused_pass("begin", {kQueries, kScratch}, begin_arguments),
                 fused_pass("scaled_outputs", {kOutput, kOutput}, output_arguments));
}

}  // namespace tessera::operations::attention
