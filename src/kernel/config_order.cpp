// SPDX-License-Identifier: Apache-2.0
#include "kernel/config_order.hpp"

#include <algorithm>

namespace tessera::kernel {

void sort_configs(std::span<Config> list, const std::function<double(const Config&)>& value) {
  std::ranges::stable_sort(list, {}, value);
}

std::span<Config> put_first(std::span<Config> list,
                            const std::function<bool(const Config&)>& belongs_there) {
  return {std::stable_partition(list.begin(), list.end(), belongs_there), list.end()};
}

}  // namespace tessera::kernel
