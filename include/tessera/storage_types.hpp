// SPDX-License-Identifier: Apache-2.0
// The storage types of one call. Most operations have one dtype for all floating operands; one that
// mixes them lists its combinations by name (Operation::types), each saying the dtype of every
// operand that it depends on.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/dtype.hpp"
#include "tessera/export.hpp"

namespace tessera {

// "f16", or "bf16_i4" = {a: bf16, b: i4, output: bf16}. A dtype converts to the combination of that
// name, and a combination to the dtype of its first operand: the one by which kernels are built
// that know no other.
class TESSERA_API StorageTypes {
 public:
  StorageTypes(DType dtype);  // NOLINT(google-explicit-constructor): see above
  // At least one operand.
  StorageTypes(std::string name, std::vector<std::pair<std::string, DType>> operands);
  // Defined once, not in every file that copies records.
  StorageTypes(const StorageTypes& other);
  StorageTypes(StorageTypes&& other) noexcept;
  StorageTypes& operator=(const StorageTypes& other);
  StorageTypes& operator=(StorageTypes&& other) noexcept;
  ~StorageTypes();

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  operator DType() const { return dtype_; }  // NOLINT(google-explicit-constructor): see above
  // Of an operand; dtype() where the combination does not name it.
  DType of(std::string_view operand) const;
  const std::vector<std::pair<std::string, DType>>& operands() const { return operands_; }
  std::string to_string() const;  // "bf16_i4 (a bf16, b i4, output bf16)"
  friend bool operator==(const StorageTypes&, const StorageTypes&) = default;

 private:
  std::string name_;
  DType dtype_;
  std::vector<std::pair<std::string, DType>> operands_;  // by name; empty: all are dtype_
};

}  // namespace tessera
