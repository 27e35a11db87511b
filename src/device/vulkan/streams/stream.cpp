// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/streams/stream.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "tessera/error.hpp"

namespace tessera::device::vulkan {
namespace {

constexpr std::size_t kBatches = 4;
constexpr std::uint32_t kCommandsPerBatch = 32;
constexpr std::uint64_t kFirstStaging = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxStaging = std::uint64_t{64} << 20;
constexpr std::uint64_t kStagingAlignment = 16;

}  // namespace

VulkanStream::VulkanStream(std::shared_ptr<Core> core, std::shared_ptr<VulkanBuffer> absent)
    : core_(std::move(core)), launcher_(core_, std::move(absent)) {
  core_->require_alive();
  batches_.reserve(kBatches);
  for (std::size_t i = 0; i < kBatches; ++i) batches_.emplace_back(core_);
}

VulkanStream::~VulkanStream() {
  if (!driver_usable()) return;
  try {
    synchronize();
  } catch (...) {
    if (core_->lost()) {
      for (Batch& batch : batches_) batch.abandon();
    } else if (std::ranges::any_of(batches_, &Batch::pending)) {
      // The device may still be at work: a leak is the lesser evil. It keeps the device open, too.
      static_cast<void>(new std::vector<Batch>(std::move(batches_)));
    }
  }
}

// ---- the ring of batches -----------------------------------------------------------------------

Batch& VulkanStream::recording_batch() {
  Batch& batch = batches_[next_];
  if (!batch.recording()) {
    batch.wait();
    batch.begin();
  }
  return batch;
}

void VulkanStream::submit() {
  if (!batches_[next_].recording()) return;
  Batch& batch = batches_[next_];
  stop_clock(batch.commands());  // or the gap between two submissions would count
  next_ = (next_ + 1) % kBatches;
  batch.submit({.waits = waits_});
  waits_.clear();
}

void VulkanStream::wait_for(VkSemaphore semaphore, std::uint64_t value) {
  core_->require_alive();
  submit();  // what came before need not wait
  waits_.push_back({semaphore, value});
}

void VulkanStream::signal(VkSemaphore semaphore, std::uint64_t value) {
  core_->require_alive();
  submit();
  const TimelinePoint point{semaphore, value};
  core_->submit(VK_NULL_HANDLE, VK_NULL_HANDLE, {.waits = waits_, .signals = {&point, 1}});
  waits_.clear();
}

void VulkanStream::retire_finished() {
  for (std::size_t i = 0; i < kBatches; ++i) {
    Batch& batch = batches_[(next_ + i) % kBatches];
    if (batch.pending() && !batch.retire_if_done()) return;
  }
}

void VulkanStream::wait_for_oldest() {
  for (std::size_t i = 0; i < kBatches; ++i) {
    Batch& batch = batches_[(next_ + i) % kBatches];
    if (batch.pending()) return batch.wait();
  }
}

void VulkanStream::flush() {
  core_->require_alive();
  submit();
}

void VulkanStream::synchronize() {
  core_->require_alive();
  submit();
  for (std::size_t i = 0; i < kBatches; ++i) batches_[(next_ + i) % kBatches].wait();
}

VkCommandBuffer VulkanStream::begin_command(bool launch) {
  const VkCommandBuffer commands = recording_batch().commands();
  if (!launch) stop_clock(commands);
  record_barrier(*core_, commands);
  return commands;
}

void VulkanStream::end_command() {
  Batch& batch = batches_[next_];
  batch.count_command();
  if (batch.recorded() >= kCommandsPerBatch) submit();
}

// ---- copies ------------------------------------------------------------------------------------

void VulkanStream::record_copy(VulkanBuffer& source, std::uint64_t source_offset,
                               VulkanBuffer& target, std::uint64_t target_offset,
                               std::uint64_t bytes) {
  const VkCommandBuffer commands = begin_command(false);
  Batch& batch = batches_[next_];
  batch.held().keep(source.shared_from_this());
  batch.held().keep(target.shared_from_this());
  const VkBufferCopy region{source.offset() + source_offset, target.offset() + target_offset,
                            bytes};
  core_->vk().CmdCopyBuffer(commands, source.handle(), target.handle(), 1, &region);
  end_command();
}

VulkanStream::StagingSlot VulkanStream::stage(std::uint64_t bytes) {
  std::uint64_t offset = (staging_used_ + kStagingAlignment - 1) & ~(kStagingAlignment - 1);
  if (!staging_[0] || offset + bytes > staging_[0]->size()) {
    // Full. The copies that read it must be on their way, or it would never become free.
    submit();
    retire_finished();
    offset = 0;
    const std::uint64_t size = staging_[0] ? staging_[0]->size() : 0;
    if (!staging_[0] || size < bytes || (size < kMaxStaging && staging_[0]->busy())) {
      // The old one stays with the batches that read it.
      const std::uint64_t grown = std::max({2 * size, bytes, kFirstStaging});
      staging_[0] = VulkanBuffer::create(core_, std::min(grown, kMaxStaging), MemoryUse::kStaging);
    } else if (staging_[0]->busy()) {
      std::swap(staging_[0], staging_[1]);
      if (!staging_[0]) staging_[0] = VulkanBuffer::create(core_, kMaxStaging, MemoryUse::kStaging);
      while (staging_[0]->busy()) wait_for_oldest();
    }
  }
  staging_used_ = offset + bytes;
  return {staging_[0], offset, staging_[0]->mapped() + offset};
}

void VulkanStream::upload(Buffer& target, std::uint64_t offset, std::span<const std::byte> bytes) {
  core_->require_alive();
  VulkanBuffer& buffer = launcher_.own(target, offset, bytes.size(), "upload");
  if (bytes.empty()) return;
  if (buffer.mapped() != nullptr) {
    retire_finished();
    if (!buffer.busy()) {
      std::memcpy(buffer.mapped() + offset, bytes.data(), bytes.size());
      return;
    }
  }
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min<std::size_t>(bytes.size(), kMaxStaging));
    const StagingSlot slot = stage(chunk.size());
    std::memcpy(slot.data, chunk.data(), chunk.size());
    record_copy(*slot.buffer, slot.offset, buffer, offset, chunk.size());
    offset += chunk.size();
    bytes = bytes.subspan(chunk.size());
  }
}

void VulkanStream::download(const Buffer& source, std::uint64_t offset,
                            std::span<std::byte> bytes) {
  core_->require_alive();
  VulkanBuffer& buffer = launcher_.own(source, offset, bytes.size(), "download");
  if (bytes.empty()) return;
  if (buffer.fast_reads()) {
    synchronize();
    std::memcpy(bytes.data(), buffer.mapped() + offset, bytes.size());
    return;
  }
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min<std::size_t>(bytes.size(), kMaxStaging));
    const StagingSlot slot = stage(chunk.size());
    record_copy(buffer, offset, *slot.buffer, slot.offset, chunk.size());
    synchronize();
    std::memcpy(chunk.data(), slot.data, chunk.size());
    offset += chunk.size();
    bytes = bytes.subspan(chunk.size());
  }
}

void VulkanStream::copy(const Buffer& source, std::uint64_t source_offset, Buffer& target,
                        std::uint64_t target_offset, std::uint64_t bytes) {
  core_->require_alive();
  VulkanBuffer& from = launcher_.own(source, source_offset, bytes, "copy, source");
  VulkanBuffer& to = launcher_.own(target, target_offset, bytes, "copy, target");
  if (bytes == 0) return;
  if (&from == &to && source_offset < target_offset + bytes &&
      target_offset < source_offset + bytes) {
    throw InvalidArgument("copy: bytes " + range_text(source_offset, bytes) + " and " +
                          range_text(target_offset, bytes) + " of one buffer overlap");
  }
  record_copy(from, source_offset, to, target_offset, bytes);
}

void VulkanStream::fill(Buffer& target, std::uint64_t offset, std::uint64_t bytes,
                        std::uint8_t value) {
  core_->require_alive();
  VulkanBuffer& buffer = launcher_.own(target, offset, bytes, "fill");
  if (bytes == 0) return;
  // vkCmdFillBuffer writes whole words; the last one may reach into the buffer's padding.
  const std::uint64_t end = offset + bytes == buffer.size() ? buffer.capacity() : offset + bytes;
  const std::uint64_t first_word = (offset + 3) & ~std::uint64_t{3};
  const std::uint64_t last_word = end & ~std::uint64_t{3};
  const auto fill_bytes = [&](std::uint64_t from, std::uint64_t to) {
    if (from >= to) return;
    const StagingSlot slot = stage(to - from);
    std::memset(slot.data, value, to - from);
    record_copy(*slot.buffer, slot.offset, buffer, from, to - from);
  };
  if (first_word >= last_word) return fill_bytes(offset, offset + bytes);
  fill_bytes(offset, first_word);
  const VkCommandBuffer commands = begin_command(false);
  batches_[next_].held().keep(buffer.shared_from_this());
  core_->vk().CmdFillBuffer(commands, buffer.handle(), buffer.offset() + first_word,
                            last_word - first_word, value * 0x01010101U);
  end_command();
  fill_bytes(last_word, end);
}

// ---- launches ----------------------------------------------------------------------------------

void VulkanStream::launch(const Launch& launch) {
  core_->require_alive();
  const Pipeline& pipeline = launcher_.check(launch);
  const VkDescriptorSet set = launcher_.bind(launch, pipeline, recording_batch().held());
  const VkCommandBuffer commands = begin_command(true);
  if (clock_ == Clock::kArmed) start_clock(commands);
  launcher_.record(commands, launch, pipeline, set);
  if (clock_ != Clock::kOff) clock_ = Clock::kRunning;
  end_command();
}

// ---- time --------------------------------------------------------------------------------------

double VulkanStream::time(const std::function<void()>& work) {
  if (clock_ != Clock::kOff) throw InvalidArgument("time() within time()");
  synchronize();
  if (core_->physical().timestamp_bits == 0) {
    // The queue has no clock: the host's, which also counts recording, submission and the wait.
    const auto start = std::chrono::steady_clock::now();
    work();
    synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  if (!queries_) {
    VkQueryPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = 2;
    VkQueryPool pool = VK_NULL_HANDLE;
    core_->check(core_->vk().CreateQueryPool(core_->handle(), &info, nullptr, &pool),
                 "vkCreateQueryPool");
    queries_ = QueryPoolHandle(*core_, pool);
  }
  struct Disarm {
    ~Disarm() { clock = Clock::kOff; }
    Clock& clock;
  } disarm{clock_};
  clock_ = Clock::kArmed;
  end_written_ = false;
  work();
  if (clock_ == Clock::kArmed) return 0.0;  // nothing was launched
  synchronize();
  return read_clock();
}

void VulkanStream::start_clock(VkCommandBuffer commands) {
  core_->vk().CmdResetQueryPool(commands, queries_.get(), 0, 2);
  // At the bottom of the pipe everything before has finished, uploads within time() among it.
  core_->vk().CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_.get(), 0);
}

// Before a batch ends and before a command that is no launch; a later launch moves the end.
void VulkanStream::stop_clock(VkCommandBuffer commands) {
  if (clock_ != Clock::kRunning) return;
  if (end_written_) core_->vk().CmdResetQueryPool(commands, queries_.get(), 1, 1);
  core_->vk().CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_.get(), 1);
  end_written_ = true;
  clock_ = Clock::kStopped;
}

double VulkanStream::read_clock() {
  std::array<std::uint64_t, 2> ticks{};
  core_->check(
      core_->vk().GetQueryPoolResults(core_->handle(), queries_.get(), 0, 2, sizeof(ticks),
                                      ticks.data(), sizeof(ticks[0]), VK_QUERY_RESULT_64_BIT),
      "vkGetQueryPoolResults");
  const PhysicalDevice& physical = core_->physical();
  const std::uint64_t mask = physical.timestamp_bits >= 64
                                 ? ~std::uint64_t{0}
                                 : (std::uint64_t{1} << physical.timestamp_bits) - 1;
  return static_cast<double>((ticks[1] - ticks[0]) & mask) *
         static_cast<double>(physical.limits.timestampPeriod) * 1e-9;
}

}  // namespace tessera::device::vulkan
