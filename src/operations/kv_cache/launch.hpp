// SPDX-License-Identifier: Apache-2.0
// What the kernels on caches are launched with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "operations/kv_cache/args.h"
#include "operations/kv_cache/problem.hpp"
#include "operations/kv_cache/tables_args.h"

namespace tessera::operations::kv_cache {

// Strides of rows (n, a, b) in elements: n by `split`s.
struct RowStrides {
  std::int64_t offset = 0, split = 1, outer = 0, inner = 0, axis0 = 0, axis1 = 0;
};
RowStrides rows_of_tokens(const TensorSpec& spec);  // [tokens, heads, dim]
RowStrides rows_of_pool(const TensorSpec& spec);    // [pages, heads, page_size, dim]
RowStrides rows_of_scales(const TensorSpec& spec, const PoolShape& pool);  // broadcast
RowStrides rows_of_pages(const TensorSpec& spec);                          // [pages, (a, (b,)) dim]
// In units of `unit` elements.
abi::CacheRows narrowed(const RowStrides& rows, std::int64_t unit = 1);

// Bytes of a unit, 16 at most, of which all rows of both are whole numbers.
std::int64_t unit_of(DType dtype, std::int64_t dim, const RowStrides& from, const RowStrides& to);

// Places in scratch, in entries of 4 bytes.
std::int64_t places_length(const Problem& problem);  // of one list of append_to_cache
std::int64_t boundaries_at(const Problem& problem);  // of its sequences, in bytes
struct Stage {
  std::int64_t owners = 0;         // where the words of pages begin, in bytes
  std::int64_t lists = 0;          // bytes that these and the lists take, a multiple of 16
  std::int64_t page = 0, row = 0;  // bytes
  std::int64_t bytes = 0;          // all of scratch
};
Stage stage_of(const Problem& problem);

abi::CachePlacesArgs places_arguments(const Problem& problem, abi::u32 round);
abi::CachePairsArgs pairs_arguments(const Problem& problem, abi::u32 round);

// How many items share a row.
std::vector<Config> row_space(std::int64_t rows, std::int64_t chunks, const DeviceProfile& profile);
Refusal rejects_rows(const Problem& problem, std::int64_t rows, const Config& config,
                     const DeviceProfile& profile);
Refusal rejects_row_count(const Problem& problem, std::int64_t rows, const DeviceProfile& profile);

}  // namespace tessera::operations::kv_cache
