// SPDX-License-Identifier: Apache-2.0
// Outputs that are let go, and the ones that get their memory.
#include "runtime/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/context_state.hpp"
#include "support/contexts.hpp"
#include "tessera/tessera.hpp"

namespace tessera::runtime {
namespace {

class BufferPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const void* stream : {first_, second_}) pool_->open(stream);
  }
  device::BufferPtr make(std::uint64_t bytes) {
    return context_.state()->device().create_buffer(bytes);
  }
  // Lent to the stream and let go at once.
  const device::Buffer* let_go(const void* stream, std::uint64_t bytes) {
    return pool_->lend(stream, make(bytes)).get();
  }

  Context context_ = testing::open("host");
  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>(1000);
  int streams_[2] = {};
  const void *first_ = &streams_[0], *second_ = &streams_[1];
};

TEST_F(BufferPoolTest, TheSameStreamAndSizeGetsItAgain) {
  const device::Buffer* const left = let_go(first_, 400);
  EXPECT_EQ(pool_->bytes(), 400U);
  EXPECT_EQ(pool_->take(second_, 400), nullptr);
  EXPECT_EQ(pool_->take(first_, 399), nullptr);
  const device::BufferPtr again = pool_->take(first_, 400);
  EXPECT_EQ(again.get(), left);
  EXPECT_EQ(pool_->take(first_, 400), nullptr);
}

TEST_F(BufferPoolTest, WhatAnotherStreamUsedIsFreed) {
  device::BufferPtr buffer = pool_->lend(first_, make(400));
  buffer->used_by(second_);
  buffer->used_by(first_);
  buffer.reset();
  EXPECT_EQ(pool_->bytes(), 0U);
}

TEST_F(BufferPoolTest, TheOldestMakeRoom) {
  let_go(first_, 400);
  let_go(first_, 500);
  EXPECT_EQ(pool_->bytes(), 900U);
  let_go(first_, 300);
  EXPECT_EQ(pool_->bytes(), 800U);
  EXPECT_EQ(pool_->take(first_, 400), nullptr);
  let_go(first_, 1001);  // more than all of it
  EXPECT_EQ(pool_->bytes(), 800U);
}

TEST_F(BufferPoolTest, AStreamThatIsClosedLeavesNothing) {
  let_go(first_, 400);
  let_go(second_, 500);
  device::BufferPtr outlives = pool_->lend(first_, make(50));
  pool_->close(first_);
  EXPECT_EQ(pool_->bytes(), 500U);
  outlives.reset();
  EXPECT_EQ(pool_->bytes(), 500U);
  EXPECT_NE(pool_->take(second_, 500), nullptr);  // and back again
  EXPECT_EQ(pool_->clear(), 500U);
  EXPECT_EQ(pool_->bytes(), 0U);
}

// Of the host, with so many bytes.
class SmallDevice final : public device::Device {
 public:
  SmallDevice(device::Device& device, std::uint64_t bytes) : device_(device), bytes_(bytes) {}
  const DeviceProfile& profile() const override { return device_.profile(); }
  device::BufferPtr create_buffer(std::uint64_t bytes) override {
    if (*used_ + bytes > bytes_) throw OutOfDeviceMemory("full", bytes, bytes_);
    const device::BufferPtr buffer = device_.create_buffer(bytes);
    *used_ += bytes;
    return {buffer.get(), [buffer, used = used_](auto*) { *used -= buffer->size(); }};
  }
  std::unique_ptr<device::Stream> create_stream() override { return device_.create_stream(); }
  device::ProgramPtr build(const device::ProgramRequest& request,
                           device::BlobStore& store) override {
    return device_.build(request, store);
  }

 private:
  device::Device& device_;
  std::uint64_t bytes_;
  std::shared_ptr<std::uint64_t> used_ = std::make_shared<std::uint64_t>(0);
};

TEST_F(BufferPoolTest, WhatWaitsIsFreedForWhatElseHasNoMemory) {
  SmallDevice device(context_.state()->device(), 1000);
  pool_->lend(first_, pool_->create(device, 600)).reset();
  const device::BufferPtr other = pool_->create(device, 700);
  EXPECT_EQ(other->size(), 700U);
  EXPECT_EQ(pool_->bytes(), 0U);
  EXPECT_THROW(pool_->create(device, 400), OutOfDeviceMemory);
}

TEST_F(BufferPoolTest, BuffersOutliveIt) {
  const device::BufferPtr buffer = pool_->lend(first_, make(400));
  pool_.reset();
  EXPECT_EQ(buffer->size(), 400U);
}

TEST_F(BufferPoolTest, ThreadsShareIt) {
  std::vector<std::jthread> threads;
  for (const void* stream : {first_, second_}) {
    threads.emplace_back([this, stream] {
      for (int i = 0; i < 2000; ++i) {
        device::BufferPtr buffer = pool_->take(stream, 100);
        if (buffer == nullptr) buffer = pool_->lend(stream, make(100));
        EXPECT_TRUE(buffer->used_only_by(stream));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(pool_->bytes(), 200U);
}

// The host leaves that to its allocator.
#define TESSERA_SKIP_ON_HOST(context) \
  if ((context).device().backend == Backend::kHost) GTEST_SKIP() << "the host keeps no outputs"

TEST(Outputs, TakeTheMemoryThatEarlierOnesLeft) {
  const Context context = testing::open_best();
  TESSERA_SKIP_ON_HOST(context);
  const Tensor q = context.upload(std::vector<float>(2 * 8 * 16, 0.5F), {1, 2, 8, 16});
  const auto call = [&](const Executor& executor) { return flash_attention(executor, q, q, q); };
  Tensor output = call(context);
  const std::vector<float> values = context.download<float>(output);
  const void* const left = output.buffer().get();
  output = {};
  Tensor again = call(context);
  EXPECT_EQ(again.buffer().get(), left);
  const Tensor other = call(context);
  EXPECT_NE(other.buffer().get(), left);  // which is in use
  EXPECT_EQ(context.download<float>(again), values);
  EXPECT_EQ(context.download<float>(other), values);

  {
    const Stream stream = context.create_stream();
    flash_attention(Executor(context).on(stream), again, again, again);
  }            // and what its outputs left is freed
  again = {};  // two streams have used it
  EXPECT_EQ(context.release_memory(), 0U);
}

TEST(Outputs, ReleaseTheirMemory) {
  const Context context = testing::open_best();
  TESSERA_SKIP_ON_HOST(context);
  const Tensor q = context.upload(std::vector<float>(2 * 8 * 16, 0.5F), {1, 2, 8, 16});
  flash_attention(context, q, q, q);
  EXPECT_EQ(context.release_memory(), 2U * 8 * 16 * sizeof(float));
  EXPECT_EQ(context.release_memory(), 0U);
}

}  // namespace
}  // namespace tessera::runtime
