// SPDX-License-Identifier: Apache-2.0
#include <tessera/tessera.hpp>

#include <cstdio>
#include <vector>

int main() {
  const tessera::Context context = tessera::Context::open({.device = "host", .cache_directory = ""});
  const std::vector<float> values{1, 2, 3, 5, 6, 7};
  const tessera::Tensor means =
      tessera::sequence_mean(context, context.upload(values, {1, 2, 3}));
  const std::vector<float> expected{3, 4, 5};
  std::printf("tessera %s on %s\n", tessera::kVersion, context.device().name.c_str());
  return context.download<float>(means) == expected ? 0 : 1;
}
