// SPDX-License-Identifier: Apache-2.0
// Keys in the pages of a pool: what such a call is, and what its kernels are told.
#include <bit>

#include "operations/attention_core/launch.hpp"
#include "operations/attention_core/validate.hpp"

namespace tessera::operations::attention {
namespace {

// The axes of a spec in another order.
TensorSpec permuted(const TensorSpec& spec, std::initializer_list<std::size_t> order) {
  TensorSpec result{.dtype = spec.dtype, .shape = {}, .strides = {}, .offset = spec.offset};
  for (const std::size_t axis : order) {
    result.shape.push_back(spec.shape[axis]);
    result.strides.push_back(spec.strides[axis]);
  }
  return result;
}

// Every other head of pages whose heads are those of keys and values by turns.
TensorSpec every_other_head(TensorSpec spec, std::int64_t first) {
  spec.offset += first * spec.strides[2];
  spec.shape[2] /= 2;
  spec.strides[2] *= 2;
  return spec;
}

TensorSpec rows(const Problem& problem, std::size_t slot) {
  const AttentionProblem& call = problem.as<AttentionProblem>();
  const TensorSpec& spec = problem.spec(slot);
  if (!call.rowless) return with_batch(spec);
  TensorSpec result = with_batch(spec);  // [1, sequences, heads, dim]
  std::swap(result.shape[0], result.shape[1]);
  std::swap(result.strides[0], result.strides[1]);
  return result;
}

TensorSpec pool(const Problem& problem, TensorSpec spec, std::int64_t first_head) {
  const AttentionProblem& call = problem.as<AttentionProblem>();
  if (!call.is_paged()) return with_batch(spec);
  if (call.is_combined()) return every_other_head(std::move(spec), first_head);
  return call.has_heads_first() ? permuted(spec, {0, 2, 1, 3}) : spec;
}

// As if each scale were a row of one feature.
TensorSpec scales(const Problem& problem, std::size_t slot, std::int64_t first_head) {
  TensorSpec spec = problem.spec(slot);
  for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
    if (spec.shape[axis] != 1) continue;
    spec.shape[axis] = problem
                           .spec(first_head == 0 ? problem.as<AttentionProblem>().slots.key
                                                 : problem.as<AttentionProblem>().slots.value)
                           .shape[axis];
    spec.strides[axis] = 0;
  }
  spec.shape.push_back(1);
  spec.strides.push_back(1);
  return pool(problem, std::move(spec), first_head);
}

void require_ints(const Problem& problem, std::size_t slot, const Shape& shape,
                  const std::string& text) {
  require(problem, problem.spec(slot).shape == shape,
          operand_text(problem, slot) + " must be " + text);
}

void require_pool(const Problem& problem, std::size_t slot, const std::string& axes) {
  const TensorSpec& spec = problem.spec(slot);
  require(problem, spec.shape.size() == 4,
          operand_text(problem, slot) + " must have the 4 axes " + axes);
  require_contiguous_rows(problem, slot);
  require(problem, spec.shape[0] >= 1 && spec.elements() > 0,
          operand_text(problem, slot) + " must have a page, a token and a head");
}

// The pools: what they say of the call.
void parse_pools(const Problem& problem, AttentionProblem& call) {
  const AttentionSlots& slots = call.slots;
  if (call.is_combined()) {
    require_pool(problem, slots.key, "[pages, page_size, 2 kv_heads, head_dim]");
    const Shape& shape = problem.spec(slots.key).shape;
    require(problem, shape[2] % 2 == 0,
            operand_text(problem, slots.key) +
                " must have an even number of heads, those of keys and values by turns");
    call.paged.pages = shape[0];
    call.paged.size = shape[1];
    call.kv_heads = shape[2] / 2;
    call.value_dim = shape[3];
  } else {
    const bool heads_first = call.has_heads_first();
    const std::size_t heads = heads_first ? 1 : 2;
    for (const std::size_t slot : {slots.key, slots.value}) {
      require_pool(
          problem, slot,
          heads_first ? "[pages, kv_heads, page_size, dim]" : "[pages, page_size, kv_heads, dim]");
    }
    const Shape &keys = problem.spec(slots.key).shape, &values = problem.spec(slots.value).shape;
    require(problem, keys[0] == values[0] && keys[1] == values[1] && keys[2] == values[2],
            operand_text(problem, slots.key) + " and " + operand_text(problem, slots.value) +
                " must have the same pages, heads and page size");
    call.paged.pages = keys[0];
    call.paged.size = keys[3 - heads];
    call.kv_heads = keys[heads];
    call.value_dim = values[3];
  }
  require(problem, problem.spec(slots.key).shape[3] == call.head_dim,
          operand_text(problem, slots.key) + " and " + operand_text(problem, slots.query) +
              " must have the same head_dim");
  require_dim(problem, slots.query);
  require_dim(problem, slots.value);
}

void parse_tables(const Problem& problem, AttentionProblem& call) {
  const AttentionSlots& slots = call.slots;
  const Shape& table = problem.spec(slots.block_tables).shape;
  require(problem, table.size() == 2,
          operand_text(problem, slots.block_tables) + " must be [sequences, pages of a sequence]");
  require(problem, table[0] < kMaxLength,
          operand_text(problem, slots.block_tables) + " must have fewer than 2^30 sequences");
  call.paged.sequences = table[0];
  call.paged.per_sequence = table[1];
  const std::string sequences = std::to_string(table[0]);
  require_ints(problem, slots.context_lens, {table[0]}, "[sequences], [" + sequences + "]");
  if (call.packed) {
    call.sequences = table[0];
    require(problem, table[0] >= 1,
            operand_text(problem, slots.block_tables) + " must have a sequence");
    require_ints(problem, slots.query_start_loc, {table[0] + 1},
                 "[sequences + 1], [" + std::to_string(table[0] + 1) + "]");
    require_ints(problem, slots.num_seqs, {1}, "[1]");
    if (problem.has(slots.distribution)) require_ints(problem, slots.distribution, {3}, "[3]");
  } else {
    require(problem, call.batch == table[0],
            operand_text(problem, slots.query) + " and " +
                operand_text(problem, slots.block_tables) + " must have the same sequences");
  }
  require(problem,
          call.paged.per_sequence <= kMaxLength && call.paged.size <= kMaxLength &&
              call.paged.per_sequence * call.paged.size < kMaxLength,
          operand_text(problem, slots.block_tables) + " must have room for fewer than 2^30 tokens");
  call.kv_len = call.paged.per_sequence * call.paged.size;
  call.paged.expected_keys = call.kv_len;
  if (problem.options.contains("max_context_len")) {
    if (const auto most = integer_option(problem, "max_context_len", 0))
      call.paged.expected_keys = std::min(call.kv_len, *most);
  }
}

}  // namespace

TensorSpec query_rows(const Problem& problem) {
  return rows(problem, problem.as<AttentionProblem>().slots.query);
}
TensorSpec output_rows(const Problem& problem) {
  return rows(problem, problem.as<AttentionProblem>().slots.output);
}
TensorSpec key_rows(const Problem& problem) {
  return pool(problem, problem.spec(problem.as<AttentionProblem>().slots.key), 0);
}
TensorSpec value_rows(const Problem& problem) {
  return pool(problem, problem.spec(problem.as<AttentionProblem>().slots.value), 1);
}
TensorSpec key_scales(const Problem& problem) {
  return scales(problem, problem.as<AttentionProblem>().slots.key_scale, 0);
}
TensorSpec value_scales(const Problem& problem) {
  return scales(problem, problem.as<AttentionProblem>().slots.value_scale, 1);
}

void validate_paged_attention(Problem& problem) {
  AttentionSlots slots = attention_slots(problem.operation->operands);
  if (problem.has(slots.value_pages)) slots = with_pools_apart(slots);
  require(problem, problem.has(slots.value_pages) || !problem.has(slots.value_pages_scale),
          "value_scale needs value_pages beside it; kv_scale has the scales of both");
  const Shape& query = problem.spec(slots.query).shape;
  require(problem, query.size() == 3,
          operand_text(problem, slots.query) + " must have the 3 axes [rows, heads, head_dim]");
  problem.dtype = problem.spec(slots.query).dtype;
  AttentionProblem call{.slots = slots, .heads = query[1], .head_dim = query[2]};
  call.packed = slots.query_start_loc != kNoOperand;
  call.rowless = !call.packed;
  call.batch = call.packed ? 1 : query[0];
  call.q_len = call.packed ? query[0] : 1;
  require(problem, query[0] < kMaxLength, "there must be fewer than 2^30 query rows");
  parse_pools(problem, call);
  check_stored(problem, call);
  parse_tables(problem, call);
  require_groups(problem, call);
  std::optional<std::int64_t> window;
  if (problem.options.contains("sliding_window"))
    window = integer_option(problem, "sliding_window", 1);
  parse_options(problem, call);
  if (window) call.window_left = std::min(kMostDistance, *window - 1);  // counts the row's own
  call.causal = call.bottom_right = true;
  check_policies(problem, call);
  call.policies = true;
  set_band(call);
  problem.infer_output(slots.output, problem.dtype, {query[0], call.heads, call.value_dim});
  require_contiguous_rows(problem, slots.output);
  problem.infer_output(slots.log_sum_exp, DType::kF32,
                       call.packed ? Shape{call.heads, query[0]} : Shape{query[0], call.heads});
  require_contiguous_rows(problem, slots.log_sum_exp);
  problem.key = make_key(problem, call) + ";page=" + std::to_string(call.paged.size);
  if (call.paged.expected_keys != call.kv_len)
    problem.key += ";most=" + bucket(call.paged.expected_keys);
  problem.set_details(call);
}

abi::AttentionPages page_arguments(const Problem& problem) {
  const AttentionProblem& call = call_of(problem);
  const TensorSpec& table = problem.spec(call.slots.block_tables);
  const auto size = static_cast<std::uint64_t>(call.paged.size);
  const auto shift = static_cast<std::uint32_t>(std::bit_width(size - 1));
  abi::AttentionPages pages{};
  pages.offset = narrow(table.offset);
  pages.stride_sequence = narrow(table.strides[0]);
  pages.stride_page = narrow(table.strides[1]);
  pages.pages = narrow(std::min<std::int64_t>(call.paged.pages, std::int64_t{1} << 31));
  pages.page_size = narrow(call.paged.size);
  pages.page_shift = shift;
  pages.page_factor = static_cast<abi::u32>(((std::uint64_t{1} << (31 + shift)) + size - 1) / size);
  return pages;
}

}  // namespace tessera::operations::attention
