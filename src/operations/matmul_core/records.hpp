// SPDX-License-Identifier: Apache-2.0
// What the records of matmul and linear have in common.
#pragma once

#include <string>

#include "operations/matmul_core/problem.hpp"

namespace tessera::operations::matmul {

Operand operand(std::string name, Role role, bool optional, std::string shape, std::string doc);
OptionInfo output_option(const std::string& operand);  // the dtype of output; that of `operand`

OptionInfo activation_option(const std::string& fallback);

// Forward: factors of 8 bits, a scale for one, and sums of them as output.
void add_eight_bits(Operation& operation);  // to operands 0 and 1
Operand scale_operand(const std::string& name, const std::string& of);
Operand output_operand(std::string shape, std::string doc);

// Forward: output as codes. The operand comes behind output.
OptionInfo quantise_option();
Operand codes_scale_operand(std::string shape);

// Validation, reference, ways, workload and the option "activation"; operands are the caller's.
Operation new_record(const std::string& name, const MatmulSlots& slots);

}  // namespace tessera::operations::matmul
