// SPDX-License-Identifier: Apache-2.0
// The combinations of dtypes that the operations take.
#include <string>
#include <utility>

#include "operations/kv_cache/problem.hpp"

namespace tessera::operations::kv_cache {
namespace {

constexpr DType kFloatTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr DType kCodeTypes[] = {DType::kI8, DType::kI4, DType::kE4M3FN, DType::kE5M2};

// Floats beside codes, by the names of their operands.
void add_codes(std::vector<StorageTypes>& types, const std::string& floats,
               const std::string& codes) {
  for (const DType dtype : kFloatTypes) {
    for (const DType code : kCodeTypes) {
      types.emplace_back(
          std::string(to_string(dtype)) + "_" + std::string(to_string(code)),
          std::vector<std::pair<std::string, DType>>{{floats, dtype}, {codes, code}});
    }
  }
}

}  // namespace

const std::vector<StorageTypes>& append_types() {
  static const auto* const types = [] {
    auto* const all = new std::vector<StorageTypes>;
    for (const DType dtype : kFloatTypes) {
      all->emplace_back(std::string(to_string(dtype)), std::vector<std::pair<std::string, DType>>{
                                                           {"keys", dtype}, {"key_cache", dtype}});
    }
    add_codes(*all, "keys", "key_cache");
    return all;
  }();
  return *types;
}

const std::vector<StorageTypes>& gradient_types() {
  static const auto* const types = [] {
    auto* const all = new std::vector<StorageTypes>;
    for (const DType dtype : kFloatTypes) {
      all->emplace_back(std::string(to_string(dtype)),
                        std::vector<std::pair<std::string, DType>>{{"grad_key_cache", dtype}});
    }
    return all;
  }();
  return *types;
}

const std::vector<StorageTypes>& pool_types() {
  static const auto* const types = [] {
    auto* const all = new std::vector<StorageTypes>;
    for (const std::span<const DType> some :
         {std::span<const DType>(kFloatTypes), std::span<const DType>(kCodeTypes)}) {
      for (const DType dtype : some) {
        all->emplace_back(std::string(to_string(dtype)),
                          std::vector<std::pair<std::string, DType>>{{"pool", dtype}});
      }
    }
    return all;
  }();
  return *types;
}

const std::vector<StorageTypes>& quantise_types() {
  static const auto* const types = [] {
    auto* const all = new std::vector<StorageTypes>;
    add_codes(*all, "input", "codes");
    return all;
  }();
  return *types;
}

const std::vector<StorageTypes>& dequantise_types() {
  static const auto* const types = [] {
    auto* const all = new std::vector<StorageTypes>;
    add_codes(*all, "output", "codes");
    return all;
  }();
  return *types;
}

}  // namespace tessera::operations::kv_cache
