// SPDX-License-Identifier: Apache-2.0
// In which order a list of configurations is tried. Compiled once: sorting that keeps the order of
// equals is much code.
#pragma once

#include <functional>
#include <span>

#include "tessera/record.hpp"

namespace tessera::kernel {

// The smallest first; equals keep their order.
void sort_configs(std::span<Config> list, const std::function<double(const Config&)>& value);

// Those of which it is true first; both parts keep their order. Returns the others.
std::span<Config> put_first(std::span<Config> list,
                            const std::function<bool(const Config&)>& belongs_there);

}  // namespace tessera::kernel
