// SPDX-License-Identifier: Apache-2.0
// What the default run leaves out is dealt: no function and no storage type is missing from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "conformance/conformance.hpp"
#include "support/contexts.hpp"
#include "support/family.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

using Types = std::map<std::string, std::set<std::string>>;  // by function

// What the default run builds on a processor through a platform; nothing where there is none.
std::optional<conformance::Built> sampled(const std::string& platform) {
  const auto devices = select_devices(probe_devices(), platform + ":cpu");
  if (devices.empty()) return {};
  const Context context = testing::open(std::to_string(devices.front().index));
  std::map<std::string, conformance::Shared> shared;
  for (const Operation* operation : all_operations()) {
    conformance::check(
        context, *operation,
        {.quick = true, .list = true, .shared = &shared[testing::family_of(*operation)]},
        [](const conformance::CheckResult&) {});
  }
  conformance::Built all;
  for (const auto& [family, known] : shared) {
    for (const auto& [function, types] : known.built.types)
      all.types[function].insert(types.begin(), types.end());
    for (const auto& [function, codes] : known.built.codes)
      all.codes[function].insert(codes.begin(), codes.end());
  }
  return all;
}

// Of functions whose first axis is DTYPE, its values, by file without its end.
Types dtypes_of(const conformance::Built& built) {
  Types all;
  for (const auto& [function, types] : built.types) {
    for (const std::string& type : types) {
      if (type.starts_with("|DTYPE="))
        all[function.substr(0, function.find('.'))].insert(type.substr(7, 1));
    }
  }
  return all;
}

class SampleCoverage : public ::testing::Test {
 protected:
  void SetUp() override {
    opencl_ = sampled("opencl");
    vulkan_ = sampled("vulkan");
    if (!opencl_ || !vulkan_) GTEST_SKIP() << "no processor through OpenCL and Vulkan here";
  }
  std::optional<conformance::Built> opencl_, vulkan_;
};

// 0, 1 and 2 are f32, f16 and bf16.
TEST_F(SampleCoverage, EveryKernelMeetsEveryStorageTypeThroughAPlatform) {
  const Types opencl = dtypes_of(*opencl_), vulkan = dtypes_of(*vulkan_);
  for (const auto& [file, types] : opencl) {
    const auto twin = vulkan.find(file);
    if (twin == vulkan.end()) continue;  // a kernel of one platform
    std::set<std::string> all = types;
    all.insert(twin->second.begin(), twin->second.end());
    EXPECT_THAT(all, ::testing::IsSupersetOf({"0", "1", "2"})) << file;
  }
}

TEST_F(SampleCoverage, EveryCodeOfCachesIsReadThroughBothPlatforms) {
  for (const auto& [built, function] :
       {std::pair{&*opencl_, "attention/cpu/decode.cl|attention_cpu_decode"},
        std::pair{&*vulkan_, "attention/tile/forward.comp|main"}}) {
    EXPECT_THAT(
        built->codes.at(function),
        ::testing::IsSupersetOf({"|CODE_TYPE=3", "|CODE_TYPE=5", "|CODE_TYPE=7", "|CODE_TYPE=8"}))
        << function;  // i8, i4, e4m3fn, e5m2 of abi/storage.h
  }
}

// Each is looked at by the variants that it was made for, and a few of them by others.
TEST_F(SampleCoverage, OfCasesThatWereMadeForOthersAVariantTakesAFew) {
  const Operation& operation = find_operation("recurrent_backward");
  std::set<std::string> of_others, taken;
  for (const Case& each : operation.workload.cases(DType::kF32)) {
    if (!each.variants.empty() && std::ranges::find(each.variants, "tile") == each.variants.end())
      of_others.insert(each.name);
  }
  const auto devices = select_devices(probe_devices(), "vulkan:cpu");
  const Context context = testing::open(std::to_string(devices.front().index));
  conformance::check(context, operation,
                     {.variant = "tile", .types = "f32", .quick = true, .list = true},
                     [&](const conformance::CheckResult& result) {
                       const std::string name = result.name.substr(result.name.rfind(' ') + 1);
                       if (!result.skipped && of_others.contains(name)) taken.insert(name);
                     });
  EXPECT_GE(of_others.size(), 10U);
  EXPECT_GE(taken.size(), of_others.size() / 10);
  EXPECT_LE(taken.size(), of_others.size() / 3);
}

}  // namespace
}  // namespace tessera
