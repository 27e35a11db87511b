// SPDX-License-Identifier: Apache-2.0
// Launches between floats and codes, for the variants that make them: append_to_cache with codes,
// quantise_cache and dequantise_cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operations/kv_cache/launch.hpp"

namespace tessera::operations::kv_cache {

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

// What the kernels of a variant are called: kv_cache/FOLDER/quantise.cl, its entry
// cache_quantiseSUFFIX, and how many work-groups there are. With `by_vectors` they know whether
// vectors of rows are aligned, and run through Vulkan, too.
struct CodingKernels {
  std::string folder{}, suffix{};
  bool by_vectors = false;
  Dim3 (*groups)(std::int64_t rows, const Config& config) = nullptr;
};

bool is_aligned(const Coding& coding);  // rows are eights of elements, at 16 bytes of floats

// An operation's passes, the launch that names its rows, and its scratch memory.
struct CodingPasses {
  std::vector<Pass> passes{};
  Coded main = nullptr;
  std::uint64_t (*scratch_bytes)(const Problem&, const Config&) = nullptr;  // null: none
};
CodingPasses append_codes_passes(const CodingKernels& kernels);
void limit_to_codes(Way& way);  // of append_to_cache: to caches of codes
CodingPasses quantise_passes(const CodingKernels& kernels);
CodingPasses dequantise_passes(const CodingKernels& kernels);

}  // namespace tessera::operations::kv_cache
