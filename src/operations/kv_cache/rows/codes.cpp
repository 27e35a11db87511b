// SPDX-License-Identifier: Apache-2.0
// Rows between floats and codes: append_to_cache with codes, quantise_cache and dequantise_cache.
#include <algorithm>
#include <string>
#include <utility>

#include "kernel/tunable_list.hpp"
#include "operations/common/lanes.hpp"
#include "operations/common/launch.hpp"
#include "operations/kv_cache/launch.hpp"
#include "operations/kv_cache/passes.hpp"

namespace tessera::operations::kv_cache {
namespace {

// One launch: rows (n, head) of floats and codes.
struct Coding {
  std::int64_t count = 0;  // of n
  PoolShape pool{};
  DType dtype = DType::kF32, codes = DType::kI8;
  RowStrides floats{}, to{}, scale{};
  abi::u32 to_list = CACHE_NO_LIST;
  std::uint32_t mode = CACHE_SCALE_GIVEN;

  std::int64_t rows() const { return count * pool.heads; }
};
using Coded = std::optional<Coding> (*)(const Problem&);

bool is_aligned(const Coding& coding) {
  const std::int64_t vector = 128 / static_cast<std::int64_t>(bits_of(coding.dtype));
  const auto fits = [](const RowStrides& rows, std::int64_t step) {
    return rows.offset % step == 0 && rows.outer % step == 0 && rows.inner % step == 0 &&
           rows.axis0 % step == 0;
  };
  return coding.pool.dim % 8 == 0 && fits(coding.floats, vector) && fits(coding.to, 8);
}

Pass coding_pass(std::string name, const std::string& file, std::vector<std::size_t> bindings,
                 Coded coded) {
  Pass pass;
  pass.name = std::move(name);
  pass.opencl = {.file = "kv_cache/rows/" + file + ".cl", .entry = "cache_" + file};
  pass.vulkan = {.file = "kv_cache/rows/" + file + ".comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.axes = dtype_axes;
  pass.constants = [coded](const Problem& problem, const Config&) -> std::vector<Define> {
    const auto coding = coded(problem);
    return {{"ALIGNED", coding && is_aligned(*coding) ? 1U : 0U},
            {"MODE", coding ? coding->mode : 0U},
            {"CODES", coding ? dtype_axis(coding->codes) : 0U},
            {"LISTED", coding && coding->to_list != CACHE_NO_LIST ? 1U : 0U}};
  };
  pass.groups = [coded](const Problem& problem, const Config& config) {
    const auto coding = coded(problem);
    return coding ? lane_groups(coding->rows(), config) : Dim3{0, 0, 0};
  };
  pass.args = [coded](const Problem& problem, const Config&) {
    const auto coding = coded(problem);
    if (!coding) return argument_bytes(abi::CacheCodesArgs{});
    return argument_bytes(abi::CacheCodesArgs{
        .rows = static_cast<abi::u32>(coding->rows()),
        .heads = static_cast<abi::u32>(std::max<std::int64_t>(coding->pool.heads, 1)),
        .dim = static_cast<abi::u32>(coding->pool.dim),
        .to_list = coding->to_list,
        .largest = static_cast<float>(largest_code(coding->codes)),
        .floats = narrowed(coding->floats),
        .codes = narrowed(coding->to),
        .scale = narrowed(coding->scale)});
  };
  return pass;
}

// ---- append_to_cache ----------------------------------------------------------------------------

Coding appended(const Problem& problem, std::size_t rows, std::size_t cache, std::size_t scale) {
  const PoolShape pool = pool_of(problem.spec(cache));
  return {.count = problem.as<AppendProblem>().tokens,
          .pool = pool,
          .dtype = problem.dtype,
          .codes = problem.spec(cache).dtype,
          .floats = rows_of_tokens(problem.spec(rows)),
          .to = rows_of_pool(problem.spec(cache)),
          .scale = rows_of_scales(problem.spec(scale), pool),
          .to_list = static_cast<abi::u32>(places_length(problem)),
          .mode = has_own_scales(problem, scale, pool) ? std::uint32_t{CACHE_SCALE_OWN}
                                                       : std::uint32_t{CACHE_SCALE_GIVEN}};
}

std::optional<Coding> appended_keys(const Problem& problem) {
  return appended(problem, kKeys, kKeyCache, kKeyScale);
}

std::optional<Coding> appended_values(const Problem& problem) {
  if (!problem.has(kValues)) return std::nullopt;
  return appended(problem, kValues, kValueCache, kValueScale);
}

// ---- quantise_cache and dequantise_cache --------------------------------------------------------

Coding coded(const Problem& problem, std::size_t floats, std::size_t codes, std::size_t scale) {
  const PoolShape& pool = problem.as<CodesProblem>().pool;
  return {.count = pool.slots(),
          .pool = pool,
          .dtype = problem.dtype,
          .codes = problem.spec(codes).dtype,
          .floats = rows_of_pool(problem.spec(floats)),
          .to = rows_of_pool(problem.spec(codes)),
          .scale = rows_of_scales(problem.spec(scale), pool)};
}

std::optional<Coding> dequantised(const Problem& problem) {
  return coded(problem, kToFloats, kFromCodes, kFromScale);
}

std::optional<Coding> quantised(const Problem& problem) {
  Coding coding = coded(problem, kFloats, kCodes, kScale);
  if (problem.as<CodesProblem>().scale_of == ScaleOf::kTokenHead) coding.mode = CACHE_SCALE_OWN;
  return coding;
}

// Where rows share scales, their largest magnitudes come first.
std::optional<Coding> peaks(const Problem& problem) {
  if (problem.as<CodesProblem>().scale_of == ScaleOf::kTokenHead) return std::nullopt;
  Coding coding = coded(problem, kFloats, kCodes, kScale);
  coding.mode = CACHE_SCALE_PEAK;
  return coding;
}

// Rows are numbered (page, slot, head).
abi::CacheScalesArgs scales_arguments(const Problem& problem) {
  const auto& call = problem.as<CodesProblem>();
  const TensorSpec& scale = problem.spec(kScale);
  const std::int64_t rows = call.pool.slots() * call.pool.heads;
  const std::int64_t page = call.pool.page_size * call.pool.heads;
  abi::CacheScalesArgs args{.count = static_cast<abi::u32>(rows),
                            .step = 1,
                            .first_step = 0,
                            .largest = static_cast<float>(largest_code(problem.spec(kCodes).dtype)),
                            .offset = static_cast<abi::u32>(scale.offset),
                            .stride = 0};
  if (call.scale_of == ScaleOf::kPage) {
    args.count = args.first_step = static_cast<abi::u32>(page);
    args.stride = static_cast<abi::u32>(scale.strides[0]);
  }
  if (call.scale_of == ScaleOf::kHead) {
    args.count = static_cast<abi::u32>(call.pool.slots());
    args.step = static_cast<abi::u32>(call.pool.heads);
    args.first_step = 1;
    args.stride = static_cast<abi::u32>(scale.strides[1]);
  }
  return args;
}

Pass scales_pass() {
  Pass pass;
  pass.name = "scales";
  pass.opencl = {.file = "kv_cache/rows/scales.cl", .entry = "cache_scales"};
  pass.vulkan = {.file = "kv_cache/rows/scales.comp", .entry = "main"};
  pass.bindings = {kScratch, kScale};
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{64}; };
  pass.groups = [](const Problem& problem, const Config&) {
    if (problem.as<CodesProblem>().scale_of == ScaleOf::kTokenHead) return Dim3{0, 0, 0};
    return Dim3{static_cast<std::uint32_t>(problem.spec(kScale).elements())};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(scales_arguments(problem));
  };
  return pass;
}

// Two chunks an item, or four, and the rows' addresses for each of them.
constexpr LaneCut kCuts[] = {{256, 2, 32}, {256, 4, 32}, {128, 2, 64}, {256, 1, 32}};

Way coding_way(std::string name, std::string idea, Coded main) {
  Variant variant;
  variant.name = std::move(name);
  variant.idea = std::move(idea);
  variant.tunables = {
#include "operations/kv_cache/rows/codes.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
  const auto space = [main](const Problem& problem, const DeviceProfile& profile) {
    const Coding coding = *main(problem);
    const std::int64_t chunks = coding.pool.dim / (is_aligned(coding) ? 8 : 2);
    std::vector<Config> configs = lane_space(coding.rows(), chunks, 32, kCuts, profile);
    for (Config& config : configs) set_conversions(config, profile);
    return configs;
  };
  variant.space = space;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return std::uint64_t{sizeof(float)} * std::max(config.group().x, 64U);
  };
  variant.rejects = [main](const Problem& problem, const Config& config,
                           const DeviceProfile& profile) -> Refusal {
    if (Refusal no = rejects_storage16(problem, profile)) return no;
    if (Refusal no = rejects_conversions(config, profile)) return no;
    return rejects_rows(problem, main(problem)->rows(), config, profile);
  };
  return {.variant = std::move(variant),
          .rule = {.why = "the only kernel with codes",
                   .when = [](const Problem&, const DeviceProfile&) { return true; },
                   .config =
                       [space](const Problem& problem, const DeviceProfile& profile) {
                         return space(problem, profile).front();
                       }}};
}

}  // namespace

Way append_codes_way() {
  Way way = coding_way("codes", "places of tokens, then rows to codes", appended_keys);
  for (const StorageTypes& types : append_types()) {
    if (is_code(types.of("key_cache"))) way.variant.types.push_back(types.name());
  }
  way.rule.when = [](const Problem& problem, const DeviceProfile&) {
    return is_code(problem.spec(kKeyCache).dtype);
  };
  way.variant.passes = places_passes();
  way.variant.passes.push_back(coding_pass(
      "keys", "quantise", {kKeys, kKeyCache, kKeyScale, kScratch, kNoOperand}, appended_keys));
  way.variant.passes.push_back(
      coding_pass("values", "quantise", {kValues, kValueCache, kValueScale, kScratch, kNoOperand},
                  appended_values));
  way.variant.scratch_bytes = places_bytes;
  return way;
}

Way quantise_way() {
  Way way = coding_way("rows", "largest magnitudes of rows, then codes", quantised);
  way.variant.passes.push_back(
      coding_pass("peaks", "quantise", {kFloats, kCodes, kScale, kNoOperand, kScratch}, peaks));
  way.variant.passes.push_back(scales_pass());
  way.variant.passes.push_back(coding_pass(
      "codes", "quantise", {kFloats, kCodes, kScale, kNoOperand, kNoOperand}, quantised));
  way.variant.scratch_bytes = [](const Problem& problem, const Config&) -> std::uint64_t {
    const auto rows = peaks(problem);
    return rows ? 4 * static_cast<std::uint64_t>(std::max<std::int64_t>(rows->rows(), 4)) : 0;
  };
  return way;
}

Way dequantise_way() {
  Way way = coding_way("rows", "codes by words", dequantised);
  way.variant.passes.push_back(
      coding_pass("floats", "dequantise", {kFromCodes, kFromScale, kToFloats}, dequantised));
  return way;
}

}  // namespace tessera::operations::kv_cache
