// SPDX-License-Identifier: Apache-2.0
// A device that builds programs and says what came of them, one line of JSON each; it runs none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "device/device.hpp"

namespace tessera::vendors {

// Hands requests on to `real`, or where that is null writes their OpenCL C to `directory`; where
// that is empty, too, lists them only.
class Recorder final : public device::Device {
 public:
  Recorder(DeviceProfile profile, device::DevicePtr real, std::filesystem::path directory);

  const DeviceProfile& profile() const override { return profile_; }
  device::BufferPtr create_buffer(std::uint64_t bytes) override;
  std::unique_ptr<device::Stream> create_stream() override;
  device::ProgramPtr build(const device::ProgramRequest& request,
                           device::BlobStore& store) override;

  // What the next programs are built for.
  void set_call(std::string call, std::string family, int level);
  // By the variant's count. `variant`: with its operation, as programs' names begin.
  void set_local_bytes(const std::string& variant, std::uint64_t bytes) {
    local_bytes_[variant] = bytes;
  }
  // A call that could not be planned.
  void fail(const std::string& variant, const std::string& error);
  void set_dims(std::set<std::uint32_t> dims) { dims_ = std::move(dims); }
  // Of all programs, by their number in the order of requests; empty = all.
  void set_only(std::set<int> numbers) { only_ = std::move(numbers); }
  int programs() const { return programs_; }
  int failures() const { return failures_; }

 private:
  std::uint64_t local_bytes_of(const std::string& program) const;
  void build_for_real(const device::ProgramRequest& request, device::BlobStore& store,
                      nlohmann::ordered_json& line);
  void write_source(const device::ProgramRequest& request, nlohmann::ordered_json& line);

  DeviceProfile profile_;
  device::DevicePtr real_;
  std::filesystem::path directory_;
  std::set<std::uint32_t> dims_;  // of HEAD_DIM; empty = all
  std::set<int> only_;
  std::string call_, family_;
  std::map<std::string, std::uint64_t> local_bytes_;
  int level_ = 0, programs_ = 0, failures_ = 0;
};

}  // namespace tessera::vendors
