// SPDX-License-Identifier: Apache-2.0
#include "tessera/storage_types.hpp"

#include <algorithm>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"

namespace tessera {

StorageTypes::StorageTypes(DType dtype) : name_(tessera::to_string(dtype)), dtype_(dtype) {}
StorageTypes::StorageTypes(const StorageTypes& other) = default;
StorageTypes::StorageTypes(StorageTypes&& other) noexcept = default;
StorageTypes& StorageTypes::operator=(const StorageTypes& other) = default;
StorageTypes& StorageTypes::operator=(StorageTypes&& other) noexcept = default;
StorageTypes::~StorageTypes() = default;

StorageTypes::StorageTypes(std::string name,
                           std::vector<std::pair<std::string, DType>> operands) try
    : name_(std::move(name)), dtype_(DType::kF32), operands_(std::move(operands)) {
  if (operands_.empty())
    throw InvalidArgument("the combination of dtypes '" + name_ + "' names no operand");
  dtype_ = operands_.front().second;
} catch (...) {
  rethrow_as_error();
}

DType StorageTypes::of(std::string_view operand) const {
  const auto found = std::ranges::find(operands_, operand, &std::pair<std::string, DType>::first);
  return found == operands_.end() ? dtype_ : found->second;
}

std::string StorageTypes::to_string() const try {
  std::string list;
  for (const auto& [operand, dtype] : operands_)
    list.append(list.empty() ? "" : ", ")
        .append(operand)
        .append(" ")
        .append(tessera::to_string(dtype));
  return list.empty() ? name_ : name_ + " (" + list + ")";
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
