// SPDX-License-Identifier: Apache-2.0
#include "operations/norms/problem.hpp"

namespace tessera::operations::norms {

std::vector<Way> norm_ways(bool backward) { return {cpu_way(backward), rows_way(backward)}; }

}  // namespace tessera::operations::norms
