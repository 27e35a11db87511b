// SPDX-License-Identifier: Apache-2.0
// What makes two devices the same: for the user's cache, and for the shipped database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "kernel/embedded.hpp"
#include "selection/cache/cache.hpp"
#include "selection/cache/choices_file.hpp"
#include "selection/profile_json.hpp"
#include "support/fake_operation.hpp"
#include "support/profiles.hpp"

namespace tessera {
namespace {

using selection::fingerprint;
using testing::load_profile;

TEST(Fingerprints, DifferBetweenMachines) {
  std::set<std::string> seen;
  for (const std::string& name : testing::profile_names()) {
    const std::string print = fingerprint(load_profile(name));
    EXPECT_TRUE(selection::is_fingerprint(print)) << print;
    EXPECT_EQ(print, fingerprint(load_profile(name)));
    EXPECT_TRUE(seen.insert(print).second) << name;
  }
}

TEST(Fingerprints, AnyRelevantFieldChangesThem) {
  const DeviceProfile base = load_profile("h200_vulkan");
  const std::function<void(DeviceProfile&)> changes[] = {
      [](DeviceProfile& p) { p.backend = Backend::kOpenCL; },
      [](DeviceProfile& p) { p.kind = DeviceKind::kIntegratedGpu; },
      [](DeviceProfile& p) { p.name += " NVL"; },
      [](DeviceProfile& p) { p.vendor += "."; },
      [](DeviceProfile& p) { ++p.vendor_id; },
      [](DeviceProfile& p) { ++p.device_id; },
      [](DeviceProfile& p) { p.driver = "NVIDIA 580.159.05"; },
      [](DeviceProfile& p) { p.api_version = "Vulkan 1.4.313"; },
      [](DeviceProfile& p) { p.compiler = "LLVM 20"; },
      [](DeviceProfile& p) { p.features = without(p.features, Feature::kFp16Arithmetic); },
      [](DeviceProfile& p) { ++p.compute_units; },
      [](DeviceProfile& p) { p.subgroup_size = 16; },
      [](DeviceProfile& p) { p.native_float_width = 4; },
      [](DeviceProfile& p) { p.max_group_size = 512; },
      [](DeviceProfile& p) { p.max_groups[1] = 1; },
      [](DeviceProfile& p) { p.local_memory = 232448; },
      [](DeviceProfile& p) { p.max_push_constants = 128; },
      [](DeviceProfile& p) { p.matrix_shapes.pop_back(); },
      // Moved text must not look the same.
      [](DeviceProfile& p) { p.name += p.vendor, p.vendor.clear(); },
  };
  std::set<std::string> seen{fingerprint(base)};
  for (const auto& change : changes) {
    DeviceProfile changed = base;
    change(changed);
    EXPECT_TRUE(seen.insert(fingerprint(changed)).second) << seen.size();
  }
}

TEST(Fingerprints, IgnoreWhichCardAndHowMuchMemory) {
  const DeviceProfile base = load_profile("h200_vulkan");
  DeviceProfile twin = base;
  twin.uuid = "00";
  twin.pci_address = "0000:5e:00.0";
  twin.global_memory -= 4096;
  twin.max_allocation -= 4096;
  twin.max_binding -= 4096;
  EXPECT_EQ(fingerprint(base), fingerprint(twin));
}

TEST(ProfileJson, RoundTrip) {
  for (const std::string& name : testing::profile_names()) {
    const DeviceProfile profile = load_profile(name);
    const nlohmann::json json = selection::profile_to_json(profile);
    std::string problem;
    const auto again = selection::profile_from_json(json, problem);
    ASSERT_TRUE(again) << problem;
    EXPECT_EQ(nlohmann::json(selection::profile_to_json(*again)), json);
    EXPECT_EQ(fingerprint(*again), fingerprint(profile));
  }
}

TEST(ProfileJson, WrongTypesAreNamed) {
  const char* wrong[] = {R"([])",
                         R"({"backend": "cuda"})",
                         R"({"kind": 3})",
                         R"({"name": null})",
                         R"({"vendor_id": -1})",
                         R"({"vendor_id": 4294967296})",
                         R"({"compute_units": 1.5})",
                         R"({"features": "fp16"})",
                         R"({"features": [1]})",
                         R"({"max_groups": [1, 2]})",
                         R"({"local_memory": "48 KiB"})"};
  for (const char* text : wrong) {
    std::string problem;
    EXPECT_FALSE(selection::profile_from_json(nlohmann::json::parse(text), problem)) << text;
    EXPECT_FALSE(problem.empty()) << text;
  }
  std::string problem;
  EXPECT_TRUE(selection::profile_from_json(
      nlohmann::json::parse(R"({"features": ["warp_drive"], "more": 1})"), problem));
}

// ---- the shipped database

class ShippedDatabaseTest : public ::testing::Test {
 protected:
  std::optional<selection::Entry> find(const DeviceProfile& profile, const std::string& key) {
    std::vector<kernel::EmbeddedFile> files;
    for (const std::string& text : texts) files.push_back({"tuning/test.json", text});
    return selection::shipped_database(profile, files)->find(key);
  }
  void ship(const DeviceProfile& device, const std::string& key, double milliseconds) {
    // The fingerprint of a shipped file is that of the kernels it was tuned with: long gone.
    texts.push_back(selection::print_choices(
        {{.fingerprint = std::string(32, '0'),
          .device = device,
          .entries = {{key, testing::tuned("tile", {{"WG_X", 64}}, milliseconds)}}}}));
  }

  std::vector<std::string> texts;
  DeviceProfile h200 = load_profile("h200_vulkan");
};

TEST_F(ShippedDatabaseTest, SameDriverBeforeAnotherDriver) {
  DeviceProfile older = h200;
  older.driver = "NVIDIA 550.54.14";
  ship(older, "a", 2);
  ship(h200, "a", 1);
  ship(older, "b", 3);
  EXPECT_EQ(find(h200, "a")->milliseconds, 1);
  EXPECT_EQ(find(h200, "a")->origin, Tier::kShipped);
  EXPECT_EQ(find(h200, "b")->milliseconds, 3) << "better than a guess";
  EXPECT_EQ(find(older, "a")->milliseconds, 2);
  EXPECT_EQ(find(h200, "c"), std::nullopt);
}

TEST_F(ShippedDatabaseTest, OtherDevicesDoNotCount) {
  ship(h200, "a", 1);
  EXPECT_EQ(find(load_profile("h200_opencl"), "a"), std::nullopt);
  EXPECT_EQ(find(load_profile("rdna3_vulkan"), "a"), std::nullopt);
  DeviceProfile half = h200;
  half.compute_units = 66;
  EXPECT_EQ(find(half, "a"), std::nullopt);
  DeviceProfile twin = h200;
  twin.uuid = "1";
  twin.pci_address = "0000:ff:00.0";
  EXPECT_TRUE(find(twin, "a"));
}

TEST_F(ShippedDatabaseTest, ABadFileHidesNoOther) {
  texts.push_back("{");
  ship(h200, "a", 1);
  EXPECT_TRUE(find(h200, "a"));
}

// What the build compiled in must be readable: a slip in tuning/ is found here and not by a user.
TEST_F(ShippedDatabaseTest, TheRealFilesAreSound) {
  for (const kernel::EmbeddedFile& file : kernel::embedded_tuning()) {
    const auto document = selection::parse_choices(file.text, selection::Checks::kOptional);
    EXPECT_EQ(document.problem, "") << file.path;
    EXPECT_EQ(document.entry_problem, "") << file.path;
    EXPECT_FALSE(document.devices.empty()) << file.path;
  }
}

// A variant or a tunable that was renamed after the files were tuned would never be found again.
TEST_F(ShippedDatabaseTest, TheRealFilesNameVariantsAndTunables) {
  for (const kernel::EmbeddedFile& file : kernel::embedded_tuning()) {
    const auto document = selection::parse_choices(file.text, selection::Checks::kOptional);
    for (const selection::DeviceChoices& device : document.devices) {
      for (const auto& [key, entry] : device.entries) {
        const Operation& operation = find_operation(key.substr(0, key.find('|')));
        const Variant* variant = operation.find_variant(entry.variant);
        ASSERT_NE(variant, nullptr) << key << ": " << entry.variant;
        EXPECT_TRUE(has(device.device.features, variant->needs.features)) << key;
        for (const auto& [name, value] : entry.config.values()) {
          const bool known =
              name.starts_with("WG_") ||
              std::ranges::any_of(variant->tunables, [&, &name = name](const Tunable& tunable) {
                return tunable.name == name && !tunable.is_constant;
              });
          EXPECT_TRUE(known) << key << ": " << name << '=' << value;
        }
      }
    }
  }
}

// As found on the machine, with the database of this build.
TEST(ShippedDatabase, AnswersOnAnH200) {
  const auto database = selection::shipped_database(load_profile("h200_opencl"));
  const auto entry = database->find(
      "flash_attention|dtype=f16;d=128;dv=128;q=2048;k=2048;bh=8;group=1;band=causal;cap=0");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->variant, "hopper");
  EXPECT_EQ(entry->origin, Tier::kShipped);
}

}  // namespace
}  // namespace tessera
