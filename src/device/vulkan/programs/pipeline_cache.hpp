// SPDX-License-Identifier: Apache-2.0
// What the driver compiled, kept across processes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "device/device.hpp"
#include "device/vulkan/core.hpp"
#include "device/vulkan/handles.hpp"

namespace tessera::device::vulkan {

// The request as the driver sees it, on this device with this driver. The cache UUID alone would
// not do: lavapipe's is the same for every Mesa.
std::string cache_key(const PhysicalDevice& device, const ProgramRequest& request);

// Whether the blob begins with this device's header. To load any other is undefined behaviour.
bool blob_fits(const PhysicalDevice& device, std::span<const std::byte> blob);

// One program's VkPipelineCache. None of it ever fails a build.
class PipelineCache {
 public:
  PipelineCache(Core& core, std::string key, BlobStore& store);
  VkPipelineCache get() const { return handle_.get(); }  // may be null
  bool warm() const { return loaded_ != 0; }
  void forget();  // starts again without the stored blob
  void save();    // if the driver has added to it

 private:
  void create(std::span<const std::byte> blob);

  Core& core_;
  std::string key_;
  BlobStore& store_;
  PipelineCacheHandle handle_;
  std::size_t loaded_ = 0;  // bytes that the stored blob had
};

}  // namespace tessera::device::vulkan
