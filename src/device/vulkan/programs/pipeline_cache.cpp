// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/programs/pipeline_cache.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/hash.hpp"
#include "base/system/log.hpp"

namespace tessera::device::vulkan {
namespace {

// VkPipelineCacheHeaderVersionOne as it lies in the blob. Its multi-byte fields are written least
// significant byte first, which is this machine's order wherever Vulkan runs.
constexpr std::size_t kHeaderBytes = 16 + VK_UUID_SIZE;

}  // namespace

std::string cache_key(const PhysicalDevice& device, const ProgramRequest& request) {
  const DeviceProfile& profile = device.profile;
  std::string identity = profile.name + "|" + profile.driver + "|" + profile.api_version + "|" +
                         profile.uuid + "|" + std::to_string(profile.vendor_id) + "|" +
                         std::to_string(profile.device_id) + "|" +
                         std::to_string(device.api_version) + "|" +
                         std::to_string(static_cast<std::uint32_t>(profile.features));
  std::string constants = request.entry + "|" + std::to_string(request.group.x) + "," +
                          std::to_string(request.group.y) + "," + std::to_string(request.group.z) +
                          "|" + std::to_string(request.bindings) + "|" +
                          std::to_string(request.argument_bytes);
  if (request.grid) constants += "|parts";
  for (const auto& [id, value] : request.specialization) {
    constants += "|" + std::to_string(id) + "=" + std::to_string(value);
  }
  return "vulkan|" + hash128(identity) + "|" + hash128(std::as_bytes(request.spirv)) + "|" +
         hash128(constants);
}

bool blob_fits(const PhysicalDevice& device, std::span<const std::byte> blob) {
  if (blob.size() < kHeaderBytes) return false;
  std::uint32_t fields[4];  // size, version, vendor, device
  std::memcpy(fields, blob.data(), sizeof(fields));
  return fields[0] >= kHeaderBytes && fields[0] <= blob.size() &&
         fields[1] == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         fields[2] == device.profile.vendor_id && fields[3] == device.profile.device_id &&
         std::memcmp(blob.data() + sizeof(fields), device.cache_uuid.data(), VK_UUID_SIZE) == 0;
}

PipelineCache::PipelineCache(Core& core, std::string key, BlobStore& store)
    : core_(core), key_(std::move(key)), store_(store) {
  const std::vector<std::byte> blob = store_.get(key_);
  if (blob_fits(core_.physical(), blob)) {
    create(blob);
    if (handle_) loaded_ = blob.size();
  } else if (!blob.empty()) {
    log(LogLevel::kInfo,
        "vulkan: a stored pipeline cache is of another device or driver; it is ignored");
  }
  if (!handle_) create({});
}

void PipelineCache::forget() {
  loaded_ = 0;
  handle_ = PipelineCacheHandle();
  create({});
}

void PipelineCache::create(std::span<const std::byte> blob) {
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = blob.size();
  info.pInitialData = blob.data();
  VkPipelineCache cache = VK_NULL_HANDLE;
  if (core_.vk().CreatePipelineCache(core_.handle(), &info, nullptr, &cache) == VK_SUCCESS) {
    handle_ = PipelineCacheHandle(core_, cache);
  }
}

void PipelineCache::save() {
  if (!handle_) return;
  std::size_t size = 0;
  if (core_.vk().GetPipelineCacheData(core_.handle(), get(), &size, nullptr) != VK_SUCCESS) return;
  // Only the header: the driver keeps nothing here (lavapipe). The same size again: nothing new.
  if (size <= kHeaderBytes || size == loaded_) return;
  std::vector<std::byte> blob(size);
  if (core_.vk().GetPipelineCacheData(core_.handle(), get(), &size, blob.data()) != VK_SUCCESS)
    return;
  blob.resize(size);
  store_.put(key_, blob);
}

}  // namespace tessera::device::vulkan
