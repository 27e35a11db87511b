// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/few_rows.hpp"

namespace tessera::operations::attention {

Refusal rejects_many_rows(const Problem& problem, const std::string& others) {
  if (rows_of_sequence(problem) <= kMostFewRows) return std::nullopt;
  return "is for few query rows, " + std::to_string(kMostFewRows) + " at most; " + others +
         " for more";
}

std::int64_t packed_rows(const Problem& problem) {
  return call_of(problem).group() * rows_of_sequence(problem);
}

AttentionTiling few_rows_tiling(const Problem& problem, const Config& config, std::uint32_t rows) {
  return {.pack = narrow(call_of(problem).group()),
          .splits = splits_of(config),
          .maps = false,
          .listed = call_of(problem).packed ? rows : 0};
}

Dim3 few_rows_groups(const Problem& problem, const Config& config, std::uint32_t rows) {
  const AttentionProblem& call = call_of(problem);
  const AttentionTiling cut = few_rows_tiling(problem, config, rows);
  return {cut.listed > 0 ? listed_items(problem, cut) : ceil_div(packed_rows(problem), rows),
          narrow(call.kv_heads), narrow(call.batch)};
}

}  // namespace tessera::operations::attention
