// SPDX-License-Identifier: Apache-2.0
// attention/cpu_forward: CPUs through OpenCL.
#include <algorithm>

#include "operations/flash_attention/cpu_geometry.hpp"
#include "operations/flash_attention/launch.hpp"

namespace tessera::operations {
namespace {

// Private memory lies on the stack of PoCL's worker threads; near 8 MiB the process crashes.
constexpr std::uint64_t kMostPrivateBytes = std::uint64_t{4} << 20;

std::vector<Tunable> tunables() {
#define TUNABLE(id, name, fallback) {id, #name, fallback, false},
#define CONSTANT(id, name, fallback) {id, #name, fallback, true},
  return {
#include "operations/flash_attention/cpu.def"
  };
#undef TUNABLE
#undef CONSTANT
}

std::uint32_t vector_width(const DeviceProfile& profile) {
  return profile.native_float_width >= 16 ? 16 : profile.native_float_width >= 8 ? 8 : 4;
}

Config make_config(std::uint32_t block_q, std::uint32_t block_k, std::uint32_t vectors, std::uint32_t key_rows,
                   std::uint32_t value_columns) {
  return {{"WG_X", 1},          {"BLOCK_Q", block_q},    {"BLOCK_K", block_k},
          {"VECTORS", vectors}, {"KEY_ROWS", key_rows}, {"VALUE_COLUMNS", value_columns}};
}

// Query rows of a work-item: as many as leave each core a few items to balance, up to what the second cache holds.
std::uint32_t block_q(const Problem& problem, const DeviceProfile& profile, std::uint32_t lanes) {
  const auto& call = problem.as<FlashAttentionProblem>();
  const std::int64_t wanted_items = 4 * std::max<std::int64_t>(profile.compute_units, 1);
  std::uint32_t rows = lanes;
  while (rows < 256) {
    const std::int64_t items = (call.q_len + 2 * rows - 1) / (2 * rows) * call.heads * call.batch;
    if (items < wanted_items) break;
    rows *= 2;
  }
  return rows;
}

// Registers decide the tiles: 24 accumulators of 16 lanes where there are 32 vector registers, 12 where there are 16.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t width = vector_width(profile);
  std::vector<Config> configs;
  const auto add = [&](std::uint32_t vectors, std::uint32_t key_rows, std::uint32_t value_columns) {
    const std::uint32_t lanes = vectors * width;
    const std::uint32_t rows = block_q(problem, profile, lanes);
    configs.push_back(make_config(rows, 96, vectors, key_rows, value_columns));
    if (rows > lanes) configs.push_back(make_config(rows / 2, 96, vectors, key_rows, value_columns));
    configs.push_back(make_config(rows, 48, vectors, key_rows, value_columns));
  };
  if (width == 8) {
    add(2, 6, 6);
  } else {
    add(4, 6, 4);
    add(2, 12, 12);
  }
  return configs;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const CpuGeometry geometry =
      cpu_geometry(config, vector_width(profile), head_dim(problem), value_dim(problem));
  if (!geometry.valid) return "its blocks are not whole tiles (operations/flash_attention/cpu.h)";
  if (geometry.private_bytes > kMostPrivateBytes) {
    return "needs " + std::to_string(geometry.private_bytes) + " bytes of private memory, and " +
           std::to_string(kMostPrivateBytes) + " are safe";
  }
  return rejects_long_offsets(problem);
}

}  // namespace

Variant cpu_variant() {
  Variant variant;
  variant.name = "cpu";
  variant.idea = "queries in vector lanes, K and V broadcast from row-major tiles, no local memory, no barriers";
  variant.needs = {.backends = {Backend::kOpenCL}, .kinds = {DeviceKind::kCpu}};
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  Pass pass = forward_pass();
  pass.opencl = {.file = "attention/cpu_forward.cl", .entry = "flash_attention_cpu"};
  pass.axes = [](const Problem& problem, const DeviceProfile& profile) -> std::vector<Define> {
    return {{"DTYPE", dtype_axis(problem.dtype)}, {"VECTOR_WIDTH", vector_width(profile)}};
  };
  variant.passes = {std::move(pass)};
  variant.space = space;
  variant.rejects = rejects;
  return variant;
}

Config default_cpu_config(const Problem& problem, const DeviceProfile& profile) {
  return space(problem, profile).front();
}

}  // namespace tessera::operations
