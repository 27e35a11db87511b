// SPDX-License-Identifier: Apache-2.0
// attention/decode: few query rows on GPUs through OpenCL.
#include <algorithm>

#include "abi/shared.h"
#include "kernel/option_access.hpp"
#include "kernel/tunable_list.hpp"
#include "operations/attention/decode.h"
#include "operations/attention/launch.hpp"

namespace tessera::operations {
namespace {

constexpr std::int64_t kMostRows = 64;
// Rows below which it is the untuned choice.
constexpr std::int64_t kFewRows = 16;

struct DecodeGeometry {
  bool valid = false;
  std::uint64_t local_bytes = 0;
  std::uint32_t registers = 0;
};

// decode.h's macros read these names.
DecodeGeometry decode_geometry(const Config& config, const Problem& problem) {
  const std::uint32_t WG_X = config.get("WG_X", 0);
  const std::uint32_t ROWS = config.get("ROWS", 0);
  const std::uint32_t BLOCK_K = config.get("BLOCK_K", 0);
  const std::uint32_t LANES = config.get("LANES", 0);
  const std::uint32_t DTYPE = dtype_axis(problem.dtype);
  const std::uint32_t HEAD_DIM = head_dim(problem);
  const std::uint32_t VALUE_DIM = value_dim(problem);
  constexpr std::uint32_t kMost = 4096;  // keeps every product below in 32 bits
  for (const std::uint32_t value : {WG_X, ROWS, BLOCK_K, LANES}) {
    if (value == 0 || value > kMost) return {};
  }
  if (WG_X < LANES || !(DECODE_VALID)) return {};
  return {.valid = true, .local_bytes = DECODE_LOCAL_BYTES, .registers = DECODE_REGISTERS};
}

std::vector<Tunable> tunables() {
  return {
#include "operations/attention/decode.def"
      kSplits,
  };
}

std::vector<Define> constants(const Problem& problem, const Config& /*config*/) {
  return {{"HEAD_DIM", head_dim(problem)},
          {"VALUE_DIM", value_dim(problem)},
          {"VECTOR", vector_elements(problem)}};
}

std::vector<Define> axes(const Problem& problem, const DeviceProfile& profile) {
  return {{"DTYPE", dtype_axis(problem.dtype)},
          {"PTX", has(profile.features, Feature::kNvidiaPtx) ? 1U : 0U}};
}

std::uint32_t packed_rows(const Problem& problem) {
  const AttentionProblem& call = call_of(problem);
  return narrow(call.group() * call.q_len);
}

AttentionTiling tiling(const Problem& problem, const Config& config) {
  return {.pack = narrow(call_of(problem).group()), .splits = splits_of(config), .maps = false};
}

Dim3 groups(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  return {ceil_div(packed_rows(problem), config.at("ROWS")), narrow(call.kv_heads),
          narrow(call.batch)};
}

// Splits that fill the device once, each a few steps long; and so many more where keys abound that
// the groups that end last do not count.
Config with_splits(Config config, const Problem& problem, const DeviceProfile& profile) {
  constexpr std::uint32_t kResident = 3;    // groups of a compute unit at a time
  constexpr std::uint32_t kMost = 16;       // groups of a compute unit in all
  constexpr std::int64_t kLongSplit = 1024;  // keys
  const AttentionProblem& call = call_of(problem);
  const Dim3 count = groups(problem, config);
  const std::uint32_t have = std::max(count.x * count.y * count.z, 1U);
  const std::uint32_t units = is_gpu(profile) ? std::max(profile.compute_units, 1U) : 1;
  const auto keys = static_cast<std::uint32_t>(std::max<std::int64_t>(call.kv_len, 1));
  const std::uint32_t filled = ceil_div(kResident * units, have);
  const std::uint32_t even = std::min<std::uint32_t>(ceil_div(kMost * units, have), keys / kLongSplit);
  const std::uint32_t most = std::max(keys / (2 * config.at("BLOCK_K")), 1U);
  config.set("SPLITS", call.splits > 0 ? static_cast<std::uint32_t>(call.splits)
                                       : std::min(std::max(filled, even), most));
  return config;
}

// Lanes for one part of every row each; as many rows as their queries and sums fit registers, and
// keys for four or eight loads under way. CPUs run the items of a group one after the other, so
// small groups do.
Config make_config(const Problem& problem, const DeviceProfile& profile, std::uint32_t items,
                   std::uint32_t keys) {
  const std::uint32_t part = problem.dtype == DType::kF32 ? 4 : 8;
  const std::uint32_t dim = std::max(head_dim(problem), value_dim(problem));
  const auto lanes = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kernel::next_power_of_two((dim + part - 1) / part), 4, 32));
  const std::uint32_t features = ceil_div(dim, lanes * part) * part;
  const auto wanted = static_cast<std::uint32_t>(
      kernel::next_power_of_two(std::max(packed_rows(problem), 1U)));
  const std::uint32_t rows =
      is_cpu(profile) ? std::min(wanted, 2U) : std::min(wanted, std::max(32 / features, 1U));
  const std::uint32_t least = ceil_div(4, rows);  // scores are read four at a time
  keys = std::max(ceil_div(keys, features / part), least);
  return {{"WG_X", items},
          {"ROWS", rows},
          {"BLOCK_K", items / lanes * std::min(keys, 32 / rows)},
          {"LANES", lanes}};
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> configs;
  const bool few = packed_rows(problem) <= 2;
  for (const std::uint32_t items : {128U, 256U, 64U}) {
    if (is_cpu(profile)) {
      configs = {make_config(problem, profile, 32, 2)};
      break;
    }
    configs.push_back(make_config(problem, profile, items, few ? 8 : 4));
  }
  for (Config& config : configs) config = with_splits(std::move(config), problem, profile);
  return configs;
}

// The kernel multiplies rows by their stride in bytes, 32 bits by 32 bits.
Refusal rejects_strides(const Problem& problem) {
  for (const std::size_t slot : {call_of(problem).slots.key, call_of(problem).slots.value}) {
    const TensorSpec spec = with_batch(problem.spec(slot));
    const std::int64_t bytes = spec.strides[1] * static_cast<std::int64_t>(size_of(spec.dtype));
    if (bytes < std::int64_t{1} << 32) continue;
    return problem.operation->operands[slot].name + " " + spec.to_string() +
           " has rows 2^32 bytes apart";
  }
  return std::nullopt;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& /*profile*/) {
  const DecodeGeometry geometry = decode_geometry(config, problem);
  if (!geometry.valid)
    return "its items do not divide into streams (operations/attention/decode.h)";
  if (call_of(problem).q_len > kMostRows) {
    return "is for few query rows, " + std::to_string(kMostRows) +
           " at most; variant tile is for more";
  }
  if (const Refusal no = rejects_strides(problem)) return no;
  if (const Refusal no = rejects_splits(problem, config)) return no;
  return rejects_long_offsets(problem, scratch_of(problem, tiling(problem, config)).end);
}

}  // namespace

Variant decode_variant(const AttentionSlots& slots) {
  Variant variant = forward_variant(
      slots, "decode",
      "keys stream through registers once for all query rows of a group; split keys", tunables(),
      {.opencl = "attention/decode.cl",
       .entry = "attention_decode",
       .tiling = tiling,
       .axes = axes,
       .groups = groups,
       .constants = constants});
  variant.needs = {.backends = {Backend::kOpenCL}, .features = Feature::kStorage16};
  variant.space = space;
  variant.local_bytes = [](const Problem& problem, const Config& config) -> std::uint64_t {
    return decode_geometry(config, problem).local_bytes;
  };
  variant.rejects = rejects;
  return variant;
}

bool prefers_decode(const Problem& problem, const DeviceProfile& profile) {
  return profile.backend == Backend::kOpenCL && is_gpu(profile) && call_of(problem).q_len < kFewRows;
}

Config default_decode_config(const Problem& problem, const DeviceProfile& profile) {
  return space(problem, profile).front();
}

}  // namespace tessera::operations
