// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/system/log.hpp"
#include "selection/cache/cache.hpp"
#include "selection/cache/choices_file.hpp"

namespace tessera::selection {
namespace {

// The same hardware through the same platform; CPUs of one name differ in their number of cores.
bool same_device(const DeviceProfile& a, const DeviceProfile& b) {
  return a.backend == b.backend && a.kind == b.kind && a.name == b.name &&
         a.vendor_id == b.vendor_id && a.device_id == b.device_id &&
         a.compute_units == b.compute_units;
}

bool same_software(const DeviceProfile& a, const DeviceProfile& b) {
  return a.driver == b.driver && a.api_version == b.api_version && a.compiler == b.compiler;
}

class ShippedDatabase final : public EntrySource {
 public:
  // Earlier entries win, so those of the same driver are added first.
  void add(const std::map<std::string, Entry>& entries) {
    entries_.insert(entries.begin(), entries.end());
  }
  std::optional<Entry> find(const std::string& key) override {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return std::nullopt;
    Entry entry = found->second;
    entry.origin = Tier::kShipped;
    return entry;
  }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace

std::unique_ptr<EntrySource> shipped_database(const DeviceProfile& profile,
                                              std::span<const kernel::EmbeddedFile> files) {
  auto database = std::make_unique<ShippedDatabase>();
  std::vector<DeviceChoices> ours;
  for (const kernel::EmbeddedFile& file : files) {
    ChoicesDocument document = parse_choices(file.text, Checks::kOptional);
    const std::string& problem =
        document.problem.empty() ? document.entry_problem : document.problem;
    if (!problem.empty()) {
      log(LogLevel::kWarning, "tuning file " + std::string(file.path) + ": " + problem);
    }
    for (DeviceChoices& device : document.devices) {
      if (same_device(device.device, profile)) ours.push_back(std::move(device));
    }
  }
  for (const bool same_driver : {true, false}) {
    for (const DeviceChoices& device : ours) {
      if (same_software(device.device, profile) == same_driver) database->add(device.entries);
    }
  }
  return database;
}

bool is_in_shipped_database(const DeviceProfile& profile) {
  return std::ranges::any_of(kernel::embedded_tuning(), [&](const kernel::EmbeddedFile& file) {
    const ChoicesDocument document = parse_choices(file.text, Checks::kOptional);
    return std::ranges::any_of(document.devices, [&](const DeviceChoices& device) {
      return same_device(device.device, profile);
    });
  });
}

std::unique_ptr<EntrySource> shipped_database(const DeviceProfile& profile) {
  return shipped_database(profile, kernel::embedded_tuning());
}

}  // namespace tessera::selection
