// SPDX-License-Identifier: Apache-2.0
// A small made-up operation for the tests of selection: it is never launched.
//
//   scale: input x [n] → output y [n], key = dtype and n rounded up to a power of two. Variants, in
//   order of record:
//     blocked    needs sub-groups; BLOCK, which falls back to 32, and WG_X; 512 bytes of work-group
//     memory for each of a block; n must be a
//                multiple of BLOCK
//     plain      any OpenCL or Vulkan device; WG_X and UNROLL, which falls back to 4
//     reference  host
//   Rules: blocked{BLOCK=64,WG_X=64} on GPUs, then plain{WG_X=1} on CPUs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "selection/selector.hpp"

namespace tessera::testing {

const Operation& fake_operation();
Problem fake_problem(std::int64_t n, DType dtype = DType::kF32);

// A store without a disk that counts what is done to it.
class FakeStore final : public selection::EntryStore {
 public:
  std::optional<selection::Entry> find(const std::string& key) override {
    ++finds;
    const auto found = entries.find(key);
    if (found == entries.end()) return std::nullopt;
    return found->second;
  }
  void put(const std::string& key, const selection::Entry& entry) override {
    ++puts;
    entries.insert_or_assign(key, entry);
  }

  std::map<std::string, selection::Entry> entries;
  int finds = 0, puts = 0;
};

// With the kernels that fake_operation() has on Vulkan.
selection::Entry tuned(std::string variant, Config config, double milliseconds = 1.5);

// A report that some candidate won.
TuneReport won(const Problem& problem, std::string variant, Config config, double milliseconds = 1);

}  // namespace tessera::testing
