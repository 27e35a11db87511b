// SPDX-License-Identifier: Apache-2.0
// What launches of plans take besides operands.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/plan.hpp"

namespace tessera::runtime {

using CreateBuffer = std::function<device::BufferPtr(std::uint64_t bytes)>;

// Scratch buffers that grow as plans need, and are safe to share by launches that run in order.
class Scratch {
 public:
  // `operands`: of the plan, by slot.
  std::span<const device::BufferPtr> reserve(const Plan& plan,
                                             std::span<const device::BufferPtr> operands,
                                             const CreateBuffer& create);
  // The first bytes of this one in place of a buffer of our own: calls that need more, and those
  // whose operands lie there, are refused with InvalidArgument.
  void lend(device::BufferPtr buffer, std::uint64_t bytes) {
    lent_ = std::move(buffer);
    lent_bytes_ = bytes;
  }

 private:
  void check_lent(const Plan& plan, std::span<const device::BufferPtr> operands) const;

  std::vector<device::BufferPtr> buffers_;  // by depth, as Plan::scratch_bytes
  device::BufferPtr lent_;
  std::uint64_t lent_bytes_ = 0;
};

// Scratch, and words for errors that nobody reads: for plans that are timed.
class WorkMemory {
 public:
  explicit WorkMemory(CreateBuffer create) : create_(std::move(create)) {}
  Memory of(const Plan& plan, std::span<const device::BufferPtr> operands);

 private:
  CreateBuffer create_;
  Scratch scratch_;
  device::BufferPtr errors_;
};

}  // namespace tessera::runtime
