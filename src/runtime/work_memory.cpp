// SPDX-License-Identifier: Apache-2.0
#include "runtime/work_memory.hpp"

#include <string>

#include "base/tensors/byte_range.hpp"
#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

void grow(device::BufferPtr& buffer, std::uint64_t bytes, const CreateBuffer& create) {
  if (bytes == 0 || (buffer && buffer->size() >= bytes)) return;
  buffer = nullptr;  // before the larger one takes its memory
  buffer = create(bytes);
}

}  // namespace

void Scratch::check_lent(const Plan& plan, std::span<const device::BufferPtr> operands) const {
  const std::string& name = plan.problem.operation->name;
  // Calls within calls have scratch of their own at the same time, which one buffer is not.
  const bool nested = plan.scratch_bytes.size() > 1;
  if (nested || plan.scratch_bytes[0] > lent_bytes_) {
    throw InvalidArgument(name + " takes " +
                          (nested ? std::string("several buffers of scratch")
                                  : std::to_string(plan.scratch_bytes[0]) + " bytes of scratch") +
                          ", and one of " + std::to_string(lent_bytes_) + " bytes was handed over");
  }
  const std::uint64_t begin = lent_->origin(), end = begin + plan.scratch_bytes[0];
  for (std::size_t slot = 0; slot < operands.size(); ++slot) {
    if (!operands[slot] || operands[slot]->storage() != lent_->storage()) continue;
    const ByteRange range = byte_range(plan.problem.spec(slot), {.call = name});
    const std::uint64_t origin = operands[slot]->origin();
    if (begin < origin + range.end && origin + range.begin < end) {
      throw InvalidArgument(name + ": the scratch that was handed over overlaps '" +
                            plan.problem.operation->operands[slot].name + "'");
    }
  }
}

std::span<const device::BufferPtr> Scratch::reserve(const Plan& plan,
                                                    std::span<const device::BufferPtr> operands,
                                                    const CreateBuffer& create) {
  if (buffers_.size() < plan.scratch_bytes.size()) buffers_.resize(plan.scratch_bytes.size());
  if (lent_ != nullptr && !plan.scratch_bytes.empty()) {
    check_lent(plan, operands);
    buffers_[0] = lent_;
  }
  for (std::size_t depth = 0; depth < plan.scratch_bytes.size(); ++depth)
    grow(buffers_[depth], plan.scratch_bytes[depth], create);
  return buffers_;
}

Memory WorkMemory::of(const Plan& plan, std::span<const device::BufferPtr> operands) {
  grow(errors_, std::uint64_t{plan.error_words} * sizeof(std::uint32_t), create_);
  return {.operands = operands,
          .scratch = scratch_.reserve(plan, operands, create_),
          .errors = errors_};
}

}  // namespace tessera::runtime
