// SPDX-License-Identifier: Apache-2.0
// Calls of the operations on caches of keys and values after validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/common/codes.hpp"
#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::kv_cache {

// Also of append_to_cache_backward: what the call reads is a gradient that it writes there, and
// there are no scales.
enum AppendSlot : std::size_t {
  kKeys,
  kValues,
  kSlotMapping,
  kBlockTables,
  kKvLens,
  kQueryStartLoc,
  kNumSeqs,
  kKeyCache,
  kValueCache,
  kKeyScale,
  kValueScale,
};
enum CopySlot : std::size_t { kSourcePages, kTargetPages, kSource, kPool };
// A gradient-free pair: floats and codes of one shape, and scales that broadcast to it.
enum QuantiseSlot : std::size_t { kFloats, kCodes, kScale };
enum DequantiseSlot : std::size_t { kFromCodes, kFromScale, kToFloats };

// One pool of pages [pages, heads, page_size, dim].
struct PoolShape {
  std::int64_t pages = 0, heads = 0, page_size = 0, dim = 0;
  std::int64_t slots() const { return pages * page_size; }
};

struct AppendProblem {
  std::int64_t tokens = 0;
  PoolShape keys{}, values{};
  bool mapped = false;                           // slot_mapping says the places
  std::int64_t sequences = 0, per_sequence = 0;  // of the tables
};

struct CopyProblem {
  std::int64_t pairs = 0, source_pages = 0, target_pages = 0;
  bool one_pool = false;
  Shape page{};  // axes of a page, the last of them rows
};

// Of quantise_cache: what shares a scale.
enum class ScaleOf : std::uint8_t { kTokenHead, kPage, kHead, kTensor };

struct CodesProblem {
  PoolShape pool{};
  ScaleOf scale_of = ScaleOf::kTokenHead;
};

void validate_append(Problem& problem);
void validate_append_backward(Problem& problem);
void validate_copy_pages(Problem& problem);
void validate_quantise(Problem& problem);
void validate_dequantise(Problem& problem);

PoolShape pool_of(const TensorSpec& spec);
bool has_own_scales(const Problem& problem, std::size_t scale, const PoolShape& pool);

// The combinations of dtypes.
const std::vector<StorageTypes>& append_types();    // "bf16", "bf16_i8"
const std::vector<StorageTypes>& gradient_types();  // of append_to_cache_backward
const std::vector<StorageTypes>& pool_types();      // of copy_pages
const std::vector<StorageTypes>& quantise_types();  // "bf16_i8"
const std::vector<StorageTypes>& dequantise_types();

// Where the tokens of a call go: a slot of the pool for each, or kNowhere; what is wrong with the
// tables.
inline constexpr std::int64_t kNowhere = -1;
struct Places {
  std::vector<std::int64_t> slots{};
  std::vector<Raised> raised{};
};
Places places_of(const Problem& problem, std::span<HostTensor> tensors);
// The same for copy_pages: the source of each pair that is copied, by target page; kNowhere.
Places pages_of(const Problem& problem, std::span<HostTensor> tensors);

void reference_append(const Problem& problem, std::span<HostTensor> tensors);
void reference_append_backward(const Problem& problem, std::span<HostTensor> tensors);
void reference_copy_pages(const Problem& problem, std::span<HostTensor> tensors);
void reference_quantise(const Problem& problem, std::span<HostTensor> tensors);
void reference_dequantise(const Problem& problem, std::span<HostTensor> tensors);

Workload append_workload();
Workload append_backward_workload();
Workload copy_pages_workload();
Workload quantise_workload();
Workload dequantise_workload();
std::vector<std::size_t> written_by_append(const Problem& problem, std::span<HostTensor> tensors,
                                           std::size_t slot);
std::vector<std::size_t> written_by_copy(const Problem& problem, std::span<HostTensor> tensors,
                                         std::size_t slot);

Way append_way();
Way append_codes_way();
Way append_codes_cpu_way();
Way append_backward_way();
Way copy_pages_way();
Way quantise_way();
Way quantise_cpu_way();
Way dequantise_way();
Way dequantise_cpu_way();

}  // namespace tessera::operations::kv_cache
