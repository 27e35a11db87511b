// SPDX-License-Identifier: Apache-2.0
// The programs of one context, each built once however many threads ask.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/device.hpp"
#include "runtime/program_name.hpp"
#include "tessera/error.hpp"

namespace tessera::runtime {

class ProgramCache {
 public:
  ProgramCache(device::Device& device, device::BlobStore& store) : device_(device), store_(store) {}
  // `grid`: of launches that may be made in parts.
  device::ProgramPtr get(const Problem& problem, const Variant& variant, const Pass& pass,
                         const Config& config, const DeviceProfile& profile,
                         const std::optional<Dim3>& grid = {});
  // Of the program that get() would return, without building it.
  static ProgramName name(const Problem& problem, const Variant& variant, const Pass& pass,
                          const Config& config, const DeviceProfile& profile);
  // Spent so far on building what get() was asked for, be it by a compiler or from the store.
  double build_seconds() const { return build_seconds_; }
  // A program outside of any operation, not kept in memory.
  device::ProgramPtr build(const device::ProgramRequest& request) {
    return device_.build(request, store_);
  }

 private:
  device::ProgramPtr build_once(const std::string& key, const device::ProgramRequest& request);
  // Within a handler: whoever waits for the program gets the exception, and others may try.
  void forget(const std::string& key, std::promise<device::ProgramPtr>& promise);

  device::Device& device_;
  device::BlobStore& store_;
  std::atomic<double> build_seconds_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<device::ProgramPtr>> programs_;
  // What compilers refused, by the program and a hash of its source: no other call waits for them
  // to say it again, and a kernel file that was mended is another program.
  std::map<std::string, BuildError> failures_;
};

}  // namespace tessera::runtime
