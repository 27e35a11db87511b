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
  std::span<const device::BufferPtr> reserve(const Plan& plan, const CreateBuffer& create);
  // In place of a buffer of our own: calls that need more are refused with InvalidArgument.
  void lend(device::BufferPtr buffer) { lent_ = std::move(buffer); }

 private:
  std::vector<device::BufferPtr> buffers_;  // by depth, as Plan::scratch_bytes
  device::BufferPtr lent_;
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
