// SPDX-License-Identifier: Apache-2.0
// What the variants with a quantised output share.
#pragma once

#include <string>
#include <vector>

#include "operations/norms/problem.hpp"

namespace tessera::operations::norms {

Pass quantise_pass();                        // before a variant says where its kernel is
std::vector<std::string> quantised_types();  // of norm_types()

}  // namespace tessera::operations::norms
