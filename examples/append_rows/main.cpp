// SPDX-License-Identifier: Apache-2.0
// Appends rows to a cache on every device, once as it should be and once with a slot that the cache
// does not have: the kernel says which, and the other rows are written all the same.
#include <cstdio>
#include <exception>

#include "operation.hpp"

namespace ts = tessera;

namespace {

ts::Variant variant() {
#ifdef HAVE_SPIRV
  return append_rows::rows_variant(KERNEL_FOLDER, {
#include "append_rows.spv.inc"
                                                  });
#else
  return append_rows::rows_variant(KERNEL_FOLDER);
#endif
}

bool run_on(const ts::DeviceInfo& info) {
  constexpr std::int64_t kCacheRows = 8, kFeatures = 4;
  const ts::Context context = ts::Context::open(std::to_string(info.index));
  const ts::Tensor cache =
      context.upload(std::vector<float>(kCacheRows * kFeatures, 0.0F), {kCacheRows, kFeatures});
  const ts::Tensor rows = context.upload(std::vector<float>(3 * kFeatures, 1.0F), {3, kFeatures});
  const auto append = [&](const std::vector<std::int32_t>& slots) {
    ts::Executor(context).run(
        "append_rows", {{"rows", rows}, {"slots", context.upload(slots, {3})}, {"cache", cache}});
  };
  append({5, 0, 2});
  context.synchronize();
  std::printf("%s\n", context.last_execution().name.c_str());

  append({1, 8, 3});
  try {
    context.synchronize();
    return false;  // it should have thrown
  } catch (const ts::DataError& error) {
    std::printf("  %s\n", error.what());
    if (error.operand() != "slots" || error.index() != 1) return false;
  }
  const std::vector<float> after = context.download<float>(cache);
  for (std::size_t row = 0; row < kCacheRows; ++row) {
    const bool is_written = row != 4 && row != 6 && row != 7;
    if (after[row * kFeatures] != (is_written ? 1.0F : 0.0F)) return false;
  }
  return true;
}

}  // namespace

int main() {
  try {
    ts::register_operation(append_rows::operation(variant()));
    bool right = true;
    for (const ts::DeviceInfo& info : ts::probe_devices().devices) right = run_on(info) && right;
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
