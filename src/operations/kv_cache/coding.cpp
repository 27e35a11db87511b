// SPDX-License-Identifier: Apache-2.0
#include "operations/kv_cache/coding.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "operations/common/launch.hpp"
#include "operations/kv_cache/passes.hpp"

namespace tessera::operations::kv_cache {
namespace {

Pass coding_pass(const CodingKernels& kernels, std::string name, const std::string& file,
                 std::vector<std::size_t> bindings, Coded coded) {
  Pass pass;
  pass.name = std::move(name);
  const std::string path = "kv_cache/" + kernels.folder + "/" + file;
  pass.opencl = {.file = path + ".cl", .entry = "cache_" + file + kernels.suffix};
  if (kernels.by_vectors) pass.vulkan = {.file = path + ".comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.axes = dtype_axes;
  pass.constants = [coded, by_vectors = kernels.by_vectors](const Problem& problem, const Config&) {
    const Coding coding = coded(problem).value_or(Coding{});
    std::vector<Define> constants{{"MODE", coding.mode},
                                  {"CODES", dtype_axis(coding.codes)},
                                  {"LISTED", coding.to_list != CACHE_NO_LIST ? 1U : 0U}};
    if (by_vectors) constants.push_back({"ALIGNED", is_aligned(coding) ? 1U : 0U});
    return constants;
  };
  pass.groups = [coded, groups = kernels.groups](const Problem& problem, const Config& config) {
    const auto coding = coded(problem);
    return coding ? groups(coding->rows(), config) : Dim3{0, 0, 0};
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

// Rows are numbered (page, head, slot).
abi::CacheScalesArgs scales_arguments(const Problem& problem) {
  const auto& call = problem.as<CodesProblem>();
  const TensorSpec& scale = problem.spec(kScale);
  const std::int64_t rows = call.pool.slots() * call.pool.heads;
  const std::int64_t page = call.pool.page_size * call.pool.heads;
  abi::CacheScalesArgs args{.count = static_cast<abi::u32>(rows),
                            .run = static_cast<abi::u32>(rows),
                            .step = 0,
                            .first_step = 0,
                            .largest = static_cast<float>(largest_code(problem.spec(kCodes).dtype)),
                            .offset = static_cast<abi::u32>(scale.offset),
                            .stride = 0};
  if (call.scale_of == ScaleOf::kPage) {
    args.count = args.run = args.first_step = static_cast<abi::u32>(page);
    args.stride = static_cast<abi::u32>(scale.strides[0]);
  }
  if (call.scale_of == ScaleOf::kHead) {
    args.count = static_cast<abi::u32>(call.pool.slots());
    args.run = args.first_step = static_cast<abi::u32>(call.pool.page_size);
    args.step = static_cast<abi::u32>(page);
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
  pass.group_size = [](const Config& config) { return Dim3{std::max(64U, config.group().x)}; };
  pass.groups = [](const Problem& problem, const Config&) {
    if (problem.as<CodesProblem>().scale_of == ScaleOf::kTokenHead) return Dim3{0, 0, 0};
    return Dim3{static_cast<std::uint32_t>(problem.spec(kScale).elements())};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(scales_arguments(problem));
  };
  return pass;
}

}  // namespace

bool is_aligned(const Coding& coding) {
  const std::int64_t vector = 128 / static_cast<std::int64_t>(bits_of(coding.dtype));
  const auto fits = [](const RowStrides& rows, std::int64_t step) {
    return rows.offset % step == 0 && rows.outer % step == 0 && rows.inner % step == 0 &&
           rows.axis0 % step == 0;
  };
  return coding.pool.dim % 8 == 0 && fits(coding.floats, vector) && fits(coding.to, 8);
}

CodingPasses append_codes_passes(const CodingKernels& kernels) {
  CodingPasses result{
      .passes = places_passes(), .main = appended_keys, .scratch_bytes = places_bytes};
  result.passes.push_back(coding_pass(kernels, "keys", "quantise",
                                      {kKeys, kKeyCache, kKeyScale, kScratch, kNoOperand},
                                      appended_keys));
  result.passes.push_back(coding_pass(kernels, "values", "quantise",
                                      {kValues, kValueCache, kValueScale, kScratch, kNoOperand},
                                      appended_values));
  return result;
}

void limit_to_codes(Way& way) {
  for (const StorageTypes& types : append_types()) {
    if (is_code(types.of("key_cache"))) way.variant.types.push_back(types.name());
  }
  way.rule.when = [others = way.rule.when](const Problem& problem, const DeviceProfile& profile) {
    return is_code(problem.spec(kKeyCache).dtype) && others(problem, profile);
  };
}

CodingPasses quantise_passes(const CodingKernels& kernels) {
  CodingPasses result{.main = quantised};
  result.passes.push_back(coding_pass(kernels, "peaks", "quantise",
                                      {kFloats, kCodes, kScale, kNoOperand, kScratch}, peaks));
  result.passes.push_back(scales_pass());
  result.passes.push_back(coding_pass(
      kernels, "codes", "quantise", {kFloats, kCodes, kScale, kNoOperand, kNoOperand}, quantised));
  result.scratch_bytes = [](const Problem& problem, const Config&) -> std::uint64_t {
    const auto rows = peaks(problem);
    return rows ? 4 * static_cast<std::uint64_t>(std::max<std::int64_t>(rows->rows(), 4)) : 0;
  };
  return result;
}

CodingPasses dequantise_passes(const CodingKernels& kernels) {
  CodingPasses result{.main = dequantised};
  result.passes.push_back(coding_pass(kernels, "floats", "dequantise",
                                      {kFromCodes, kFromScale, kToFloats}, dequantised));
  return result;
}

}  // namespace tessera::operations::kv_cache
