// SPDX-License-Identifier: Apache-2.0
#include "conformance/hostile.hpp"

#include <cstdio>
#include <utility>
#include <vector>

#include "conformance/device.hpp"
#include "support/hostile_tables.hpp"
#include "tessera/error.hpp"

namespace tessera::testing {

int run_hostile(const std::string& selector, std::uint64_t count, std::uint64_t seed,
                const std::function<bool(const Operation&)>& is_wanted) try {
  const auto device = first_device(selector);
  if (!device) return kNoDevice;
  const Context context = Context::open(std::to_string(device->index));
  std::vector<std::pair<const Operation*, Case>> kinds;
  for (const Operation* operation : all_operations()) {
    if (operation->errors.empty() || !operation->workload.cases || !is_wanted(*operation)) continue;
    for (Case& shape : hostile_cases(*operation)) kinds.emplace_back(operation, std::move(shape));
  }
  if (kinds.empty()) {
    std::printf("no operation that was asked for has calls with such tables\n");
    return kNoDevice;
  }
  const std::uint64_t each = (count + kinds.size() - 1) / kinds.size();
  std::uint64_t failed = 0;
  for (const auto& [operation, shape] : kinds) {
    const std::string failure = check_hostile_tables(context, *operation, shape, seed, each);
    if (!failure.empty()) ++failed;
    std::printf("%s %s: %s\n", operation->name.c_str(), shape.name.c_str(),
                failure.empty() ? (std::to_string(each) + " tables passed").c_str()
                                : ("FAILED " + failure).c_str());
  }
  std::printf("hostile tables: %llu calls of %zu kinds, %llu failed\n",
              static_cast<unsigned long long>(each * kinds.size()), kinds.size(),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
} catch (const Error& error) {
  std::printf("FAILED %s\n", error.what());
  return 1;
}

}  // namespace tessera::testing
