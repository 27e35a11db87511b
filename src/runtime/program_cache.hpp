// SPDX-License-Identifier: Apache-2.0
// The programs of one context, each built once however many threads ask.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/device.hpp"

namespace tessera::runtime {

class ProgramCache {
 public:
  ProgramCache(device::Device& device, device::BlobStore& store) : device_(device), store_(store) {}
  device::ProgramPtr get(const Problem& problem, const Variant& variant, const Pass& pass,
                         const Config& config, const DeviceProfile& profile);
  // A program outside of any operation, not kept in memory.
  device::ProgramPtr build(const device::ProgramRequest& request) {
    return device_.build(request, store_);
  }

 private:
  device::ProgramPtr build_once(const std::string& key, const device::ProgramRequest& request);

  device::Device& device_;
  device::BlobStore& store_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<device::ProgramPtr>> programs_;
};

}  // namespace tessera::runtime
