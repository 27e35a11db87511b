// SPDX-License-Identifier: Apache-2.0
#include "operations/kv_cache/launch.hpp"

#include <algorithm>
#include <bit>

#include "operations/common/lanes.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::kv_cache {
namespace {

abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

std::int64_t bytes_of(DType dtype, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(bits_of(dtype)) / 8;
}

abi::u32 offset_of(const Problem& problem, std::size_t slot) {
  return problem.has(slot) ? narrow(problem.spec(slot).offset) : 0U;
}

}  // namespace

RowStrides rows_of_tokens(const TensorSpec& spec) {
  return {.offset = spec.offset, .outer = spec.strides[0], .axis0 = spec.strides[1]};
}

RowStrides rows_of_pool(const TensorSpec& spec) {
  return {.offset = spec.offset,
          .split = std::max<std::int64_t>(spec.shape[2], 1),
          .outer = spec.strides[0],
          .inner = spec.strides[2],
          .axis0 = spec.strides[1]};
}

RowStrides rows_of_scales(const TensorSpec& spec, const PoolShape& pool) {
  const auto stride = [&](std::size_t axis) {
    return spec.shape[axis] == 1 ? 0 : spec.strides[axis];
  };
  return {.offset = spec.offset,
          .split = std::max<std::int64_t>(pool.page_size, 1),
          .outer = stride(0),
          .inner = stride(2),
          .axis0 = stride(1)};
}

RowStrides rows_of_pages(const TensorSpec& spec) {
  RowStrides rows{.offset = spec.offset, .outer = spec.strides[0]};
  if (spec.shape.size() > 2) rows.axis1 = spec.strides[spec.shape.size() - 2];
  if (spec.shape.size() > 3) rows.axis0 = spec.strides[1];
  return rows;
}

abi::CacheRows narrowed(const RowStrides& rows, std::int64_t unit) {
  return {.offset = narrow(rows.offset / unit),
          .split = narrow(rows.split),
          .outer = narrow(rows.outer / unit),
          .inner = narrow(rows.inner / unit),
          .axis0 = narrow(rows.axis0 / unit),
          .axis1 = narrow(rows.axis1 / unit)};
}

std::int64_t unit_of(DType dtype, std::int64_t dim, const RowStrides& from, const RowStrides& to) {
  std::int64_t all = 16 | bytes_of(dtype, dim);
  for (const RowStrides& rows : {from, to}) {
    for (const std::int64_t elements :
         {rows.offset, rows.outer, rows.inner, rows.axis0, rows.axis1})
      all |= bytes_of(dtype, elements);
  }
  const std::int64_t unit = std::int64_t{1} << std::countr_zero(static_cast<std::uint64_t>(all));
  return unit == 8 ? 4 : unit;
}

std::int64_t places_length(const Problem& problem) {
  return std::int64_t{ceil_div(problem.as<AppendProblem>().tokens, 4)} * 4;
}

std::int64_t boundaries_at(const Problem& problem) {
  return 8 * places_length(problem) + 4 * problem.as<AppendProblem>().keys.slots();
}

Stage stage_of(const Problem& problem) {
  const auto& call = problem.as<CopyProblem>();
  Stage stage{.owners = std::int64_t{ceil_div(call.pairs, 4)} * 64};
  stage.lists = stage.owners + std::max<std::int64_t>(1, ceil_div(call.target_pages, 4)) * 16;
  stage.row = bytes_of(problem.dtype, call.page.back());
  stage.page = stage.row;
  for (std::size_t axis = 0; axis + 1 < call.page.size(); ++axis) stage.page *= call.page[axis];
  stage.bytes = stage.lists + (call.one_pool ? call.pairs * stage.page : 0);
  return stage;
}

abi::CachePlacesArgs places_arguments(const Problem& problem, abi::u32 round) {
  const auto& call = problem.as<AppendProblem>();
  return {.tokens = narrow(call.tokens),
          .list = narrow(places_length(problem)),
          .pages = narrow(call.keys.pages),
          .page_size = narrow(call.keys.page_size),
          .mapped = call.mapped ? 1U : 0U,
          .slots_offset = offset_of(problem, kSlotMapping),
          .sequences = narrow(call.sequences),
          .pages_per_sequence = narrow(call.per_sequence),
          .tables_offset = offset_of(problem, kBlockTables),
          .tables_stride =
              problem.has(kBlockTables) ? narrow(problem.spec(kBlockTables).strides[0]) : 0U,
          .lengths_offset = offset_of(problem, kKvLens),
          .boundaries = narrow(boundaries_at(problem) / 4),
          .counted = problem.has(kNumSeqs) ? 1U : 0U,
          .count_offset = offset_of(problem, kNumSeqs),
          .errors = 0,
          .round = round};
}

abi::CachePairsArgs pairs_arguments(const Problem& problem, abi::u32 round) {
  const auto& call = problem.as<CopyProblem>();
  return {.pairs = narrow(call.pairs),
          .source_pages = narrow(call.source_pages),
          .target_pages = narrow(call.target_pages),
          .one_pool = call.one_pool ? 1U : 0U,
          .owners = narrow(stage_of(problem).owners / 4),
          .sources_offset = offset_of(problem, kSourcePages),
          .targets_offset = offset_of(problem, kTargetPages),
          .errors = 0,
          .round = round};
}

std::vector<Config> row_space(std::int64_t rows, std::int64_t chunks,
                              const DeviceProfile& profile) {
  constexpr LaneCut kCuts[] = {{256, 1, 32}, {128, 1, 64}, {256, 4, 32}};
  return lane_space(rows, chunks, 32, kCuts, profile);
}

Refusal rejects_rows(const Problem& problem, std::int64_t rows, const Config& config,
                     const DeviceProfile& profile) {
  if (Refusal no = rejects_lanes(config)) return no;
  return rejects_row_count(problem, rows, profile);
}

Refusal rejects_row_count(const Problem& problem, std::int64_t rows, const DeviceProfile& profile) {
  if (rows >= std::int64_t{1} << 31)
    return "counts rows to 2^31, and these are " + std::to_string(rows);
  return rejects_long_operands(problem, profile);
}

}  // namespace tessera::operations::kv_cache
