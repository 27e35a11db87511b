// SPDX-License-Identifier: Apache-2.0
// What the records of recurrent, gla and lightning_attention have in common.
#pragma once

#include <string>

#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

// Operands, the options reverse and softmax_scale, errors, validation, reference, ways, workload.
Operation new_record(const std::string& name, const RecurrenceSlots& slots);

// Of the three operations alike.
inline constexpr const char* kGradientFormula =
    "D_t = softmax_scale query_t grad_output_t^T + A_(t+1) D_(t+1), where A_t is the factor of "
    "H_(t-1) "
    "and grad_final_state joins after the last token; grad_query_t = softmax_scale H_t "
    "grad_output_t; "
    "grad_key_t = D_t value_t; grad_value_t = D_t^T key_t; grad_initial_state = A_0 D_0; of "
    "decays: "
    "sums of D_t A_t H_(t-1)";

}  // namespace tessera::operations::recurrence
