// SPDX-License-Identifier: Apache-2.0
// One query of each sequence, which sees the keys from sequence_start to sequence_end.
#include "kernel/option_access.hpp"
#include "operations/attention_core/validate.hpp"

namespace tessera::operations::attention {

void validate_ragged_decode(Problem& problem) {
  const AttentionSlots slots = attention_slots(problem.operation->operands);
  const Shape& query = problem.spec(slots.query).shape;
  require(problem, query.size() == 3 || (query.size() == 4 && query[1] == 1),
          operand_text(problem, slots.query) +
              " must be [batch, heads, head_dim] or [batch, 1, heads, head_dim]");
  require_contiguous_rows(problem, slots.query);
  require_dim(problem, slots.query);
  problem.dtype = problem.spec(slots.query).dtype;
  for (const std::size_t slot : {slots.key, slots.value}) {
    require_rows(problem, slot, false);
  }
  const Shape &key = problem.spec(slots.key).shape, &value = problem.spec(slots.value).shape;
  require(problem, key[0] == value[0] && key[1] == value[1] && key[2] == value[2],
          operand_text(problem, slots.key) + " and " + operand_text(problem, slots.value) +
              " must have the same batch, number of rows and number of heads");
  require(problem, key[0] == query[0] && key[3] == query.back(),
          operand_text(problem, slots.query) + " and " + operand_text(problem, slots.key) +
              " must have the same batch and head_dim");
  AttentionProblem call{.slots = slots,
                        .batch = query[0],
                        .q_len = 1,
                        .kv_len = key[1],
                        .heads = query[query.size() - 2],
                        .kv_heads = key[2],
                        .head_dim = key[3],
                        .value_dim = value[3]};
  call.rowless = query.size() == 3;
  check_stored(problem, call);
  require(problem, call.kv_len < kMaxLength && call.batch < kMaxLength,
          "batch and number of rows must be below 2^30");
  require_groups(problem, call);
  for (const std::size_t slot : {slots.sequence_start, slots.sequence_end}) {
    require(problem, problem.spec(slot).shape == Shape{call.batch},
            operand_text(problem, slot) + " must be [batch], [" + std::to_string(call.batch) + "]");
  }
  parse_options(problem, call);
  call.bias_after_cap = true;
  call.causal = call.bottom_right = true;
  check_policies(problem, call);
  call.policies = true;
  set_band(call);
  Shape output = query;
  output.back() = call.value_dim;
  problem.infer_output(slots.output, problem.dtype, output);
  require_contiguous_rows(problem, slots.output);
  problem.infer_output(
      slots.log_sum_exp, DType::kF32,
      call.rowless ? Shape{call.batch, call.heads} : Shape{call.batch, call.heads, 1});
  require_contiguous_rows(problem, slots.log_sum_exp);
  problem.key = make_key(problem, call) + ";spans";
  problem.set_details(call);
}

}  // namespace tessera::operations::attention
