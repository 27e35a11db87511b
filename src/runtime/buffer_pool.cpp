// SPDX-License-Identifier: Apache-2.0
#include "runtime/buffer_pool.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/error.hpp"

namespace tessera::runtime {

void BufferPool::open(const void* stream) {
  const std::lock_guard lock(mutex_);
  streams_.insert(stream);
}

void BufferPool::close(const void* stream) noexcept {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
  std::erase_if(waiting_, [&](const Waiting& each) {
    if (each.stream == stream) bytes_ -= each.buffer->size();
    return each.stream == stream;
  });
}

device::BufferPtr BufferPool::create(device::Device& device, std::uint64_t bytes) {
  try {
    return device.create_buffer(bytes);
  } catch (const OutOfDeviceMemory&) {
    if (clear() == 0) throw;
  }
  return device.create_buffer(bytes);
}

device::BufferPtr BufferPool::take(const void* stream, std::uint64_t bytes) {
  device::BufferPtr buffer;
  {
    const std::lock_guard lock(mutex_);
    // The last one is the likeliest to be in a cache.
    const auto found = std::ranges::find_if(waiting_.rbegin(), waiting_.rend(), [&](const auto& w) {
      return w.stream == stream && w.buffer->size() == bytes;
    });
    if (found == waiting_.rend()) return nullptr;
    buffer = std::move(found->buffer);
    waiting_.erase(std::next(found).base());
    bytes_ -= bytes;
  }
  return lend(stream, std::move(buffer));
}

device::BufferPtr BufferPool::lend(const void* stream, device::BufferPtr buffer) {
  buffer->used_by(stream);
  device::Buffer* const plain = buffer.get();
  return {plain, [pool = weak_from_this(), stream, held = std::move(buffer)](auto*) mutable {
            device::BufferPtr let_go = std::move(held);
            if (const std::shared_ptr<BufferPool> home = pool.lock())
              home->give_back(stream, std::move(let_go));
          }};
}

void BufferPool::give_back(const void* stream, device::BufferPtr buffer) noexcept {
  if (!buffer->used_only_by(stream) || buffer->size() > most_bytes_) return;
  std::vector<device::BufferPtr> freed;  // behind the lock
  try {
    const std::lock_guard lock(mutex_);
    if (!streams_.contains(stream)) return;
    const std::uint64_t size = buffer->size();
    waiting_.push_back({stream, std::move(buffer)});
    bytes_ += size;
    while (bytes_ > most_bytes_) {
      freed.push_back(std::move(waiting_.front().buffer));
      bytes_ -= freed.back()->size();
      waiting_.erase(waiting_.begin());
    }
  } catch (const std::bad_alloc&) {  // then it is freed
  }
}

std::uint64_t BufferPool::clear() noexcept {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
  return std::exchange(bytes_, 0);
}

std::uint64_t BufferPool::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace tessera::runtime
