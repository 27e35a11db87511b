// SPDX-License-Identifier: Apache-2.0
// What the records of matmul and linear have in common.
#pragma once

#include <string>

#include "operations/matmul_core/problem.hpp"

namespace tessera::operations::matmul {

Operand operand(std::string name, Role role, bool optional, std::string shape, std::string doc);
OptionInfo output_option(const std::string& operand);  // the dtype of output; that of `operand`

// Validation, reference, ways, workload and the option "activation"; operands are the caller's.
Operation new_record(const std::string& name, const MatmulSlots& slots);

}  // namespace tessera::operations::matmul
