// SPDX-License-Identifier: Apache-2.0
#include "operations/selective_scan/launch.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "operations/common/launch.hpp"

namespace tessera::operations::state_space {
namespace {

constexpr std::uint32_t kCombineItems = 64;

abi::u32 features_of(const Problem& problem) {
  const ScanCall& call = scan_call_of(problem);
  abi::u32 features = 0;
  const auto mark = [&](bool holds, abi::u32 feature) { features |= holds ? feature : 0U; };
  mark(call.layout.packed, SCAN_PACKED);
  mark(problem.has(kScanD), SCAN_D);
  mark(problem.has(kScanZ), SCAN_Z);
  mark(problem.has(kScanBias), SCAN_BIAS);
  mark(call.softplus, SCAN_SOFTPLUS);
  mark(problem.has(kScanInitial), SCAN_INITIAL);
  mark(problem.has(kScanFinal), SCAN_FINAL);
  constexpr std::array kStates{std::size_t{kScanA}, std::size_t{kScanInitial},
                               std::size_t{kScanFinal}};
  constexpr std::array kBack{std::size_t{kScanGradInitial}};
  mark(by_fours(problem, kStates) && (!call.backward || by_fours(problem, kBack)), SCAN_ALIGNED);
  if (!call.backward) return features;
  mark(problem.has(kScanGradU), SCAN_GRAD_U);
  mark(problem.has(kScanGradDelta), SCAN_GRAD_DELTA);
  mark(problem.has(kScanGradA), SCAN_GRAD_A);
  mark(problem.has(kScanGradB), SCAN_GRAD_B);
  mark(problem.has(kScanGradC), SCAN_GRAD_C);
  mark(problem.has(kScanGradD), SCAN_GRAD_D);
  mark(problem.has(kScanGradZ), SCAN_GRAD_Z);
  mark(problem.has(kScanGradBias), SCAN_GRAD_BIAS);
  mark(problem.has(kScanGradInitial), SCAN_GRAD_INITIAL);
  return features;
}

abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

abi::ScanFactors factors_of(const Problem& problem, std::size_t slot) {
  if (!problem.has(slot)) return {};
  const TensorSpec& spec = problem.spec(slot);
  return {narrow(spec.offset), narrow(spec.strides[0]), narrow(spec.strides[1]),
          narrow(spec.strides[2]), narrow(spec.strides[3])};
}

// Of an operand of channels: [dim] or [dim, state].
void place(const Problem& problem, std::size_t slot, abi::u32& offset, abi::u32& row,
           abi::u32* column = nullptr) {
  if (!problem.has(slot)) return;
  const TensorSpec& spec = problem.spec(slot);
  offset = narrow(spec.offset);
  row = narrow(spec.strides[0]);
  if (column != nullptr) *column = narrow(spec.strides[1]);
}

}  // namespace

bool has_factors(const Problem& problem) {
  return scan_call_of(problem).backward && (problem.has(kScanGradB) || problem.has(kScanGradC));
}

abi::ScanArgs scan_arguments(const Problem& problem) {
  const ScanCall& call = scan_call_of(problem);
  abi::ScanArgs args{};
  args.features = features_of(problem);
  args.types = type_of(problem, kScanU, SCAN_TYPE_ROWS) | type_of(problem, kScanA, SCAN_TYPE_A) |
               type_of(problem, kScanD, SCAN_TYPE_D) | type_of(problem, kScanBias, SCAN_TYPE_BIAS);
  args.tokens = narrow(call.layout.tokens);
  args.batches = narrow(call.layout.batch);
  args.sequences = narrow(call.layout.sequences);
  args.dim = narrow(call.layout.dim);
  args.groups = narrow(call.groups);
  args.states = narrow(call.states);
  place(problem, kScanA, args.a_offset, args.a_row, &args.a_column);
  place(problem, kScanD, args.d_offset, args.d_stride);
  place(problem, kScanBias, args.bias_offset, args.bias_stride);
  args.u = rows_of(problem, kScanU);
  args.delta = rows_of(problem, kScanDelta);
  args.z = rows_of(problem, kScanZ);
  args.result = rows_of(problem, kScanOutput);
  args.initial_state = rows_of(problem, kScanInitial);
  args.final_state = rows_of(problem, kScanFinal);
  args.b = factors_of(problem, kScanB);
  args.c = factors_of(problem, kScanC);
  if (!call.backward) return args;
  place(problem, kScanGradA, args.da_offset, args.da_row, &args.da_column);
  place(problem, kScanGradD, args.dd_offset, args.dd_stride);
  place(problem, kScanGradBias, args.dbias_offset, args.dbias_stride);
  args.du = rows_of(problem, kScanGradU);
  args.ddelta = rows_of(problem, kScanGradDelta);
  args.dz = rows_of(problem, kScanGradZ);
  args.dinitial = rows_of(problem, kScanGradInitial);
  args.db = factors_of(problem, kScanGradB);
  args.dc = factors_of(problem, kScanGradC);
  return args;
}

Pass scan_combine_pass(
    std::function<abi::ScanArgs(const Problem& problem, const Config& config)> arguments) {
  constexpr abi::u32 kCombined =
      SCAN_GRAD_A | SCAN_GRAD_B | SCAN_GRAD_C | SCAN_GRAD_D | SCAN_GRAD_BIAS;
  Pass pass;
  pass.name = "combine";
  pass.opencl = {.file = "state_space/scan/combine.cl", .entry = "selective_scan_combine"};
  pass.vulkan = {.file = "state_space/scan/combine.comp", .entry = "main"};
  pass.bindings = {kScanGradB, kScanGradC, kScanGradA, kScanGradD, kScanGradBias, kScratch};
  pass.axes = typed_axes;
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{kCombineItems}; };
  pass.groups = [](const Problem& problem, const Config&) {
    if ((features_of(problem) & kCombined) == 0) return Dim3{0, 0, 0};
    const ScanCall& call = scan_call_of(problem);
    const std::int64_t factors = has_factors(problem) ? 2 * call.layout.batch * call.layout.tokens *
                                                            call.groups * call.states
                                                      : 0;
    return groups_of(ceil_div(factors + call.layout.dim * (call.states + 2), kCombineItems));
  };
  pass.args = [arguments = std::move(arguments)](const Problem& problem, const Config& config) {
    return argument_bytes(arguments(problem, config));
  };
  return pass;
}

}  // namespace tessera::operations::state_space
