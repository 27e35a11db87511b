// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "base/hash.hpp"
#include "selection/cache/cache.hpp"

namespace tessera::selection {
namespace {

// Change it when the fields or their order change.
constexpr std::string_view kScheme = "tessera fingerprint 3";

// Each value with its length, so that no two lists of fields give one text.
class Text {
 public:
  void add(std::string_view name, std::string_view value) {
    text_.append(name).append(":").append(std::to_string(value.size())).append(":");
    text_.append(value).append("\n");
  }
  void add(std::string_view name, std::uint64_t value) { add(name, std::to_string(value)); }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

// Left out: UUID and PCI address, since two cards of one kind are tuned alike; and the sizes of
// global memory, of one allocation and of one binding, which some drivers derive from the memory
// that happens to be free or installed. Every choice is judged against the real limits anyway
// before it is used.
std::string fingerprint(const DeviceProfile& profile) {
  Text text;
  text.add("scheme", kScheme);
  text.add("backend", to_string(profile.backend));
  text.add("kind", to_string(profile.kind));
  text.add("name", profile.name);
  text.add("vendor", profile.vendor);
  text.add("vendor_id", profile.vendor_id);
  text.add("device_id", profile.device_id);
  text.add("driver", profile.driver);
  text.add("api_version", profile.api_version);
  text.add("compiler", profile.compiler);
  text.add("features", static_cast<std::uint64_t>(profile.features));
  text.add("compute_units", profile.compute_units);
  text.add("subgroup_size", profile.subgroup_size);
  text.add("native_float_width", profile.native_float_width);
  text.add("max_group_size", profile.max_group_size);
  for (const std::uint32_t count : profile.max_groups) text.add("max_groups", count);
  text.add("local_memory", profile.local_memory);
  text.add("max_push_constants", profile.max_push_constants);
  for (const MatrixShape& shape : profile.matrix_shapes) text.add("matrix", to_string(shape));
  return hash128(text.str());
}

}  // namespace tessera::selection
