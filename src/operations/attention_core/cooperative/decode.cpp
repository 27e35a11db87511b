// SPDX-License-Identifier: Apache-2.0
// attention/cooperative/decode: few query rows by matrix units through Vulkan.
#include "operations/attention_core/cooperative/decode.h"

#include <algorithm>

#include "abi/storage.h"
#include "base/vendor_ids.hpp"
#include "kernel/gpu.hpp"
#include "kernel/matrices.hpp"
#include "kernel/tunable_list.inc"
#include "operations/attention_core/few_rows.hpp"

namespace tessera::operations::attention {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/cooperative/decode.def"
      kSplits,
  };
}

// Query rows of a kv head from which on matrices pay, where keys are no codes.
constexpr std::int64_t kLeastShared = 4;
// Rows of a compute unit's groups, about, for each leaves sums: on an H200 16 sequences of 32768
// keys in groups of 16 take 0.590 ms by 9 splits, 0.636 by 17.
constexpr std::uint32_t kSplitRows = 128;
constexpr std::uint32_t kMostRegisters = 176;  // by the geometry's estimate, on GPUs

struct FewRowsGeometry {
  bool valid = false;
  std::uint32_t local_bytes = 0;
  std::uint32_t part = 0;       // elements that an item reads at once
  std::uint32_t registers = 0;  // of an item, about
};

// decode.h's macros read the locals here.
FewRowsGeometry geometry_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/cooperative/decode.def"
  const AttentionProblem& call = call_of(problem);
  const auto ATTN_KEY_BITS =
      static_cast<std::uint32_t>(bits_of(call.has_codes() ? call.stored : problem.dtype));
  const std::uint32_t HEAD_DIM = head_dim(problem);
  const std::uint32_t VALUE_DIM = value_dim(problem);
  constexpr std::uint32_t kMost = 4096;  // keeps every product below in 32 bits
  for (const std::uint32_t value : {WG_X, KEYS, LANES, MATRIX_M, MATRIX_N, MATRIX_K}) {
    if (value > kMost) return {};
  }
  if (!(ATTN_FEW_DIVISORS) || !(ATTN_FEW_VALID)) return {};
  return {.valid = true,
          .local_bytes = ATTN_FEW_LOCAL_BYTES,
          .part = ATTN_FEW_PART,
          .registers = ATTN_FEW_REGISTERS};
}

AttentionTiling tiling(const Problem& problem, const Config& config) {
  return few_rows_tiling(problem, config, config.at("MATRIX_N"));
}

Dim3 groups(const Problem& problem, const Config& config) {
  return few_rows_groups(problem, config, config.at("MATRIX_N"));
}

std::vector<Define> constants(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  return {{"HEAD_DIM", head_dim(problem)},
          {"VALUE_DIM", value_dim(problem)},
          {"CAPPED", call.soft_cap > 0 ? 1U : 0U},
          {"WHOLE_PAGES", call.paged.size % config.at("KEYS") == 0 ? 1U : 0U},
          {"CODE_TYPE", code_type(problem)}};
}

// The device's shapes for this call: first those whose columns the rows fill best, then those of
// which an instruction does most.
std::vector<MatrixShape> shapes(const Problem& problem, const DeviceProfile& profile) {
  std::vector<MatrixShape> found;
  for (const MatrixShape& shape : profile.matrix_shapes) {
    if (shape.input == problem.dtype) found.push_back(shape);
  }
  const std::int64_t rows = packed_rows(problem);
  std::ranges::stable_sort(found, {}, [rows](const MatrixShape& s) {
    return std::pair{ceil_div(rows, s.n) * s.n, -std::int64_t{s.m} * s.k};
  });
  return found;
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::int64_t pinned = call_of(problem).splits;
  // Of codes as many bytes as of floats (H200, i8: 0.72 ms with 32 keys, 0.93 with 16).
  std::vector<std::uint32_t> most_keys{16, 32, 8};
  if (call_of(problem).has_codes()) most_keys = {32, 16, 8};
  std::vector<Config> configs;
  for (const MatrixShape& shape : shapes(problem, profile)) {
    for (const std::uint32_t keys : most_keys) {
      for (const std::uint32_t subgroups : {4U, 2U, 8U}) {
        Config config{{"WG_X", subgroups * profile.subgroup_size},
                      {"KEYS", keys},
                      {"LANES", profile.subgroup_size},
                      {"MATRIX_M", shape.m},
                      {"MATRIX_N", shape.n},
                      {"MATRIX_K", shape.k}};
        const FewRowsGeometry geometry = geometry_of(problem, config);
        if (!geometry.valid || geometry.local_bytes > profile.local_memory ||
            config.group().x > profile.max_group_size ||
            (is_gpu(profile) && geometry.registers > kMostRegisters))
          continue;
        config.set("SPLITS", pinned > 0
                                 ? static_cast<std::uint32_t>(pinned)
                                 : splits_of_few_rows(problem, profile, groups(problem, config),
                                                      kSplitRows / shape.n));
        configs.push_back(std::move(config));
      }
    }
  }
  return configs;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const AttentionProblem& call = call_of(problem);
  if ((call.features & POLICY_PAIRS) != 0) {
    return "takes no masks, biases, slopes, segments, positions and dropout; variant decode does";
  }
  if (Refusal no = rejects_many_rows(problem, "variants cooperative and tile are")) return no;
  if (Refusal no = kernel::rejects_matrices(problem, config, profile)) return no;
  const FewRowsGeometry geometry = geometry_of(problem, config);
  if (!geometry.valid) return "has no such parts (operations/attention_core/cooperative/decode.h)";
  if (!is_aligned(problem, geometry.part)) {
    return "reads " + std::to_string(geometry.part) +
           " elements at once, of which some dim, offset or stride is no multiple";
  }
  if (const Refusal no = rejects_far_keys(problem)) return no;
  if (const Refusal no = rejects_splits(problem, config)) return no;
  if (Refusal no = rejects_list(problem, tiling(problem, config), profile)) return no;
  return rejects_long_offsets(problem, profile, scratch_of(problem, tiling(problem, config)).end);
}

Variant cooperative_decode_variant(const AttentionSlots& slots) {
  Variant variant = forward_variant(
      slots, "cooperative_decode",
      "cooperative matrices for the query rows of a group; keys, values and codes cross local "
      "memory; split keys",
      tunables(),
      {.vulkan = "attention/cooperative/decode.comp",
       .tiling = tiling,
       .axes = dtype_axes,
       .groups = groups,
       .constants = constants,
       .takes_list = true,
       .takes_codes = true});
  variant.needs = kernel::matrix_needs();
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = true;
  variant.space = space;
  variant.local_bytes = [](const Problem& problem, const Config& config) -> std::uint64_t {
    return geometry_of(problem, config).local_bytes;
  };
  variant.rejects = rejects;
  return variant;
}

// On NVIDIA's GPUs, where it was measured.
bool prefers_cooperative_decode(const Problem& problem, const DeviceProfile& profile) {
  if (profile.backend != Backend::kVulkan || profile.vendor_id != kVendorNvidia) return false;
  return rows_of_sequence(problem) < kFewRows &&
         (packed_rows(problem) >= kLeastShared || call_of(problem).has_codes()) &&
         !space(problem, profile).empty();
}

}  // namespace

Way cooperative_decode(const AttentionSlots& slots) {
  return {.variant = cooperative_decode_variant(slots),
          .rule = {.why = "few query rows that share keys, which the matrix unit reads once",
                   .when = prefers_cooperative_decode}};
}

}  // namespace tessera::operations::attention
