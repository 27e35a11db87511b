// SPDX-License-Identifier: Apache-2.0
// What the records of lstm, gru and rnn have in common.
#pragma once

#include <string>
#include <vector>

#include "operations/cells_core/problem.hpp"

namespace tessera::operations::cells {

// Forward and backward: operands, the option reverse, errors, validation, reference, ways,
// workload.
std::vector<Operation> new_records(const std::string& name, Cell cell, const std::string& summary,
                                   const std::string& formula);

}  // namespace tessera::operations::cells
