// SPDX-License-Identifier: Apache-2.0
// What the records of recurrences have in common.
#pragma once

#include <string>

#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

// Operands, the options reverse and softmax_scale, errors, validation, reference, ways, workload.
Operation new_record(const std::string& name, const RecurrenceSlots& slots);

// Of recurrent, gla and lightning_attention alike.
inline constexpr const char* kGradientFormula =
    "D_t = softmax_scale query_t grad_output_t^T + A_(t+1) D_(t+1), where A_t is the factor of "
    "H_(t-1) "
    "and grad_final_state joins after the last token; grad_query_t = softmax_scale H_t "
    "grad_output_t; "
    "grad_key_t = D_t value_t; grad_value_t = D_t^T key_t; grad_initial_state = A_0 D_0; of "
    "decays: "
    "sums of D_t A_t H_(t-1)";
// Of delta_rule and gated_delta_rule alike.
inline constexpr const char* kDeltaGradientFormula =
    "with P_t = exp(g_t) H_(t-1) and u_t = value_t - P_t^T key_t: D_t = softmax_scale query_t "
    "grad_output_t^T + exp(g_(t+1)) E_(t+1), where grad_final_state joins after the last token; "
    "c_t = D_t^T key_t; E_t = D_t - beta_t key_t c_t^T; grad_query_t = softmax_scale H_t "
    "grad_output_t; grad_key_t = beta_t (D_t u_t - P_t c_t); grad_value_t = beta_t c_t; "
    "grad_beta_t = u_t^T c_t; grad_g_t: sums of E_t P_t; grad_initial_state = exp(g_0) E_0";

}  // namespace tessera::operations::recurrence
