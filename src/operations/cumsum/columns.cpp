// SPDX-License-Identifier: Apache-2.0
// An item for each column of a chunk or sequence: any device.
#include <algorithm>
#include <string>

#include "operations/common/boundaries.hpp"
#include "operations/common/launch.hpp"
#include "operations/cumsum/args.h"
#include "operations/cumsum/call.hpp"

namespace tessera::operations::recurrence {
namespace {

constexpr std::int64_t kMostGroups = 65535;  // along an axis; kernels step over the rest

const CumsumCall& call_of(const Problem& problem) { return problem.as<CumsumCall>(); }

std::int64_t units_of(const CumsumCall& call) {
  // No sequence still leaves rows to clear.
  if (call.sequences) return std::max<std::int64_t>(*call.sequences, 1);
  return ceil_div(call.tokens, call.chunk);
}

std::vector<std::byte> arguments(const Problem& problem, const Config& /*config*/) {
  const CumsumCall& call = call_of(problem);
  const auto narrow = [](std::int64_t value) { return static_cast<abi::u32>(value); };
  const TensorSpec &from = problem.spec(kCumsumInput), &to = problem.spec(kCumsumOutput);
  abi::CumsumArgs args{};
  args.tokens = narrow(call.tokens);
  args.units = narrow(units_of(call));
  args.batches = narrow(call.batch);
  args.heads = narrow(call.heads);
  args.dim = narrow(call.dim);
  args.chunk = narrow(call.chunk);
  args.reverse = call.reverse ? 1 : 0;
  args.in_type = dtype_axis(from.dtype);
  args.out_type = dtype_axis(to.dtype);
  args.scale = static_cast<float>(call.scale);
  if (call.sequences) args.boundaries = narrow(*call.sequences + 1);
  const std::size_t token = call.token_axis(), head = call.head_axis();
  args.in_offset = narrow(from.offset);
  args.in_batch = narrow(from.strides[0]);
  args.in_token = narrow(from.strides[token]);
  args.in_head = narrow(from.strides[head]);
  args.in_feature = from.strides.size() == 4 ? narrow(from.strides[3]) : 1;
  args.out_offset = narrow(to.offset);
  args.out_batch = narrow(to.strides[0]);
  args.out_token = narrow(to.strides[token]);
  args.out_head = narrow(to.strides[head]);
  args.out_feature = to.strides.size() == 4 ? narrow(to.strides[3]) : 1;
  return argument_bytes(args);
}

Refusal rejects(const Problem& problem, const Config& /*config*/, const DeviceProfile& profile) {
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  const CumsumCall& call = call_of(problem);
  const std::int64_t longest = call.sequences ? 2 * call.tokens : call.chunk;
  const std::int64_t rounds =
      longest * ceil_div(std::max<std::int64_t>(call.batch * units_of(call), 1), kMostGroups);
  if (Refusal no = rejects_rounds(rounds, profile)) return no;
  return rejects_long_operands(problem, profile, {});
}

Config config_of(const Problem& /*problem*/, const DeviceProfile& /*profile*/) {
  return {{"WG_X", 64}};
}

}  // namespace

Way cumsum_columns_way() {
  Variant variant;
  variant.name = "columns";
  variant.idea = "an item adds up a column of a chunk or of a packed sequence";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.space = [](const Problem& problem, const DeviceProfile& profile) {
    return std::vector<Config>{config_of(problem, profile)};
  };
  variant.rejects = rejects;
  Pass pass;
  pass.name = "scan";
  pass.opencl = {.file = "recurrence/scan/scan.cl", .entry = "cumsum_scan"};
  pass.vulkan = {.file = "recurrence/scan/scan.comp", .entry = "main"};
  pass.bindings = {kCumsumInput, kScratch, kCumsumOutput};
  pass.axes = shader_storage_axes;
  pass.groups = [](const Problem& problem, const Config& config) {
    const CumsumCall& call = call_of(problem);
    return Dim3{ceil_div(call.heads * call.dim, config.group().x),
                static_cast<std::uint32_t>(std::min(call.batch * units_of(call), kMostGroups))};
  };
  pass.args = arguments;
  variant.passes = list_of(
      boundaries_pass(kCumsumOffsets, kNoOperand,
                      [](const Problem& problem, const Config&) -> Boundaries {
                        return {.tokens = call_of(problem).tokens, .outside = 0, .decreases = 1};
                      }),
      std::move(pass));
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return boundaries_bytes(problem, kCumsumOffsets);
  };
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; },
                   .config = config_of}};
}

}  // namespace tessera::operations::recurrence
