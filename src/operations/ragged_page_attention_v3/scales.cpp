// SPDX-License-Identifier: Apache-2.0
#include "operations/ragged_page_attention_v3/scales.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "abi/storage.h"
#include "kernel/option_access.hpp"
#include "operations/attention_core/launch.hpp"
#include "operations/attention_core/scaled_args.h"
#include "operations/common/codes.hpp"
#include "operations/common/numerics.hpp"
#include "operations/ragged_page_attention_v3/fused.hpp"

namespace tessera::operations::attention {
namespace {

std::optional<double> positive_option(const Problem& problem, const char* name) {
  const std::optional<double> value = kernel::number_option(problem, name);
  if (value && *value <= 0) kernel::bad_option(problem, name, "greater than 0");
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

abi::AttentionScaledArgs scaled_arguments(const TensorSpec& from, const TensorSpec& to) {
  return {.rows = narrow(from.shape[0]),
          .heads = narrow(from.shape[1]),
          .dim = narrow(from.shape[2]),
          .code = 0,
          .divisor = 1,
          .factor = 1,
          .most = std::numeric_limits<float>::infinity(),
          .from = rows_of(from),
          .to = rows_of(to)};
}

Pass scaled_pass(const std::string& name, std::size_t from, std::size_t to) {
  Pass pass = helper_pass("scaled_rows");
  pass.name = name;
  pass.constants = {};
  pass.bindings = {from, to};
  return pass;
}

Dim3 items(std::int64_t count) { return Dim3{ceil_div(count, kHelperItems), 1, 1}; }

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

std::vector<Pass> scale_passes() {
  Pass pairs = helper_pass("scale_pairs");
  pairs.axes = {};
  pairs.constants = {};
  pairs.bindings = {kScratch};
  pairs.groups = [](const Problem& problem, const Config&) {
    return items(scales_of(problem).of_codes ? scale_pairs(problem).spec.elements() : 0);
  };
  pairs.args = [](const Problem& problem, const Config&) {
    const FusedScales scales = scales_of(problem);
    const TensorSpec spec = scale_pairs(problem).spec;
    return argument_bytes(
        abi::AttentionScalePairsArgs{.count = narrow(spec.elements()),
                                     .offset = narrow(spec.offset),
                                     .key = static_cast<float>(scales.key.value_or(1)),
                                     .value = static_cast<float>(scales.value.value_or(1))});
  };

  Pass queries = scaled_pass("scaled_queries", kQueries, kScratch);
  queries.groups = [](const Problem& problem, const Config&) {
    return items(scales_of(problem).query ? problem.spec(kQueries).elements() : 0);
  };
  queries.args = [](const Problem& problem, const Config&) {
    abi::AttentionScaledArgs args =
        scaled_arguments(problem.spec(kQueries), scaled_queries(problem).spec);
    const DType stored = problem.spec(kCache).dtype;
    args.divisor = static_cast<float>(scales_of(problem).query.value_or(1));
    if (is_code(stored)) {
      args.code = dtype_axis(stored);
    } else {
      args.most = static_cast<float>(largest_number(stored));
    }
    return argument_bytes(args);
  };

  Pass outputs = scaled_pass("scaled_outputs", kOutput, kOutput);
  outputs.groups = [](const Problem& problem, const Config&) {
    return items(scales_of(problem).of_outputs() != 1 ? problem.spec(kOutput).elements() : 0);
  };
  outputs.args = [](const Problem& problem, const Config&) {
    const TensorSpec& spec = problem.spec(kOutput);
    abi::AttentionScaledArgs args = scaled_arguments(spec, spec);
    args.factor = static_cast<float>(scales_of(problem).of_outputs());
    return argument_bytes(args);
  };
  return {std::move(pairs), std::move(queries), std::move(outputs)};
}

}  // namespace tessera::operations::attention
