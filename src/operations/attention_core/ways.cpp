// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/problem.hpp"

namespace tessera::operations::attention {

// Each is the work of a room.
#define FORWARD(name) Way name(const AttentionSlots& slots);
#define PAGED_ROWS FORWARD
#define CODES FORWARD
#define BACKWARD FORWARD
#include "operations/attention_core/ways.def"
#undef FORWARD
#undef PAGED_ROWS
#undef CODES
#undef BACKWARD

std::vector<Way> forward_ways(const AttentionSlots& slots) {
#define FORWARD(name) name(slots),
#define PAGED_ROWS FORWARD
#define CODES FORWARD
#define BACKWARD(name)
  return {
#include "operations/attention_core/ways.def"
  };
#undef FORWARD
#undef PAGED_ROWS
#undef CODES
#undef BACKWARD
}

namespace {

// Of an operation that takes codes, too.
[[maybe_unused]] Way of_floats(Way way) {
  for (const DType dtype : way.variant.dtypes) way.variant.types.emplace_back(to_string(dtype));
  return way;
}

}  // namespace

std::vector<Way> paged_ways(const AttentionSlots& slots) {
  const bool has_rows = slots.query_start_loc != kNoOperand;
  std::vector<Way> ways;
#define FORWARD(name)
#define PAGED_ROWS(name) \
  if (has_rows) ways.push_back(of_floats(name(slots)));
#define CODES(name) ways.push_back(name(slots));
#define BACKWARD FORWARD
#include "operations/attention_core/ways.def"
  return ways;
#undef FORWARD
#undef PAGED_ROWS
#undef CODES
#undef BACKWARD
}

std::vector<Way> backward_ways(const AttentionSlots& slots) {
#define FORWARD(name)
#define PAGED_ROWS FORWARD
#define CODES FORWARD
#define BACKWARD(name) name(slots),
  return {
#include "operations/attention_core/ways.def"
  };
}

}  // namespace tessera::operations::attention
