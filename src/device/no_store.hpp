// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.hpp"

namespace tessera::device {

// Keeps nothing: everything is compiled.
class NoStore final : public BlobStore {
 public:
  std::vector<std::byte> get(std::string_view /*key*/) override { return {}; }
  void put(std::string_view /*key*/, std::span<const std::byte> /*blob*/) override {}
  bool keeps() const override { return false; }
};

}  // namespace tessera::device
