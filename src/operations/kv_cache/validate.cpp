// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <string>
#include <utility>

#include "kernel/option_access.hpp"
#include "operations/kv_cache/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::kv_cache {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 31;

const std::string& name_of(const Problem& problem, std::size_t slot) {
  return problem.operation->operands[slot].name;
}

void require_rows(const Problem& problem, std::size_t slot) {
  const TensorSpec& spec = problem.spec(slot);
  require(problem, spec.shape.back() <= 1 || spec.strides.back() == 1,
          name_of(problem, slot) + " must be contiguous along its last axis");
  require(problem, !is_packed(spec.dtype) || spec.shape.back() % 2 == 0,
          operand_text(problem, slot) + " has rows that end within a byte");
}

void require_rank(const Problem& problem, std::size_t slot, std::size_t rank) {
  require(problem, problem.spec(slot).shape.size() == rank,
          operand_text(problem, slot) + " must be " + problem.operation->operands[slot].shape);
}

void require_list(const Problem& problem, std::size_t slot, std::int64_t length) {
  require_shape(problem, slot, {length});
  require(problem, problem.spec(slot).is_contiguous(),
          name_of(problem, slot) + " must be contiguous");
}

void require_pool(const Problem& problem, std::size_t slot) {
  require_rank(problem, slot, 4);
  require_rows(problem, slot);
  require(problem, pool_of(problem.spec(slot)).slots() < kMost,
          operand_text(problem, slot) + " has 2^31 slots or more");
}

void require_scale(const Problem& problem, std::size_t slot, const PoolShape& pool) {
  const TensorSpec& spec = problem.spec(slot);
  const Shape full{pool.pages, pool.heads, pool.page_size};
  bool fits = spec.shape.size() == 3;
  for (std::size_t axis = 0; fits && axis < 3; ++axis)
    fits = spec.shape[axis] == 1 || spec.shape[axis] == full[axis];
  require(problem, fits,
          operand_text(problem, slot) + " does not broadcast to " +
              TensorSpec{.dtype = spec.dtype, .shape = full}.to_string());
}

// Keys and their cache, or values and theirs.
PoolShape check_side(const Problem& problem, std::size_t rows, std::size_t cache,
                     std::size_t scale) {
  require_rank(problem, rows, 3);
  require_rows(problem, rows);
  require_pool(problem, cache);
  const PoolShape pool = pool_of(problem.spec(cache));
  const TensorSpec& spec = problem.spec(rows);
  require(problem, spec.shape[1] == pool.heads && spec.shape[2] == pool.dim,
          operand_text(problem, rows) + " and " + operand_text(problem, cache) +
              " differ in heads or features");
  const bool codes = is_code(problem.spec(cache).dtype);
  require(problem, codes == problem.has(scale),
          name_of(problem, cache) +
              (codes ? " holds codes and needs " : " holds no codes and takes no ") +
              name_of(problem, scale));
  if (codes) require_scale(problem, scale, pool);
  return pool;
}

void check_tables(const Problem& problem, AppendProblem& call) {
  for (const std::size_t slot : {kBlockTables, kKvLens, kQueryStartLoc}) {
    require(problem, problem.has(slot),
            "needs slot_mapping, or block_tables, kv_lens and query_start_loc");
  }
  require_rank(problem, kBlockTables, 2);
  const Shape& tables = problem.spec(kBlockTables).shape;
  call.sequences = tables[0];
  call.per_sequence = tables[1];
  require(problem, tables[1] <= 1 || problem.spec(kBlockTables).strides[1] == 1,
          "block_tables must be contiguous along its last axis");
  require_list(problem, kKvLens, call.sequences);
  require_list(problem, kQueryStartLoc, call.sequences + 1);
  if (problem.has(kNumSeqs)) require_list(problem, kNumSeqs, 1);
  require(problem,
          call.per_sequence * std::max<std::int64_t>(call.sequences, 1) < kMost &&
              call.per_sequence * call.keys.page_size < kMost,
          operand_text(problem, kBlockTables) + " has room for 2^31 tokens or more");
}

void check_places(const Problem& problem, AppendProblem& call) {
  if (!call.mapped) return check_tables(problem, call);
  for (const std::size_t slot : {kBlockTables, kKvLens, kQueryStartLoc, kNumSeqs}) {
    require(problem, !problem.has(slot),
            "takes slot_mapping or tables, and not " + name_of(problem, slot) + " beside it");
  }
  require_list(problem, kSlotMapping, call.tokens);
}

void check_pages(const Problem& problem, const AppendProblem& call) {
  require(problem,
          call.values.pages == call.keys.pages && call.values.page_size == call.keys.page_size,
          operand_text(problem, kValueCache) + " and " + operand_text(problem, kKeyCache) +
              " differ in pages");
}

// The gradient of new rows, which the call makes, and that of their cache.
PoolShape check_gradient(Problem& problem, std::size_t rows, std::size_t cache,
                         std::int64_t tokens) {
  require_pool(problem, cache);
  const PoolShape pool = pool_of(problem.spec(cache));
  problem.infer_output(rows, problem.dtype, {tokens, pool.heads, pool.dim});
  require_rows(problem, rows);
  return pool;
}

// A list of slots has as many entries as there are tokens; tables do not say.
std::int64_t tokens_option(const Problem& problem, bool mapped) {
  const auto tokens = kernel::integers_option(problem, "tokens");
  const bool is_number = !tokens || (tokens->size() == 1 && tokens->front() >= 0);
  if (!is_number) kernel::bad_option(problem, "tokens", "an integer of at least 0");
  if (tokens) return tokens->front();
  require(problem, mapped, "needs the option tokens, for tables do not say how many there are");
  require_rank(problem, kSlotMapping, 1);
  return problem.spec(kSlotMapping).shape[0];
}

std::string pool_key(const PoolShape& pool) {
  return ";heads=" + std::to_string(pool.heads) + ";page=" + std::to_string(pool.page_size) +
         ";dim=" + std::to_string(pool.dim);
}

}  // namespace

PoolShape pool_of(const TensorSpec& spec) {
  return {.pages = spec.shape[0],
          .heads = spec.shape[1],
          .page_size = spec.shape[2],
          .dim = spec.shape[3]};
}

bool has_own_scales(const Problem& problem, std::size_t scale, const PoolShape& pool) {
  return problem.has(scale) && !kernel::bool_option(problem, "read_scales") &&
         problem.spec(scale).shape == Shape{pool.pages, pool.heads, pool.page_size};
}

void validate_append(Problem& problem) {
  problem.dtype = problem.spec(kKeys).dtype;
  AppendProblem call{.tokens = 0, .mapped = problem.has(kSlotMapping)};
  call.keys = check_side(problem, kKeys, kKeyCache, kKeyScale);
  call.tokens = problem.spec(kKeys).shape[0];
  require(problem, call.tokens < kMost / 4, operand_text(problem, kKeys) + " has too many tokens");
  require(problem, problem.has(kValues) == problem.has(kValueCache),
          "values and value_cache come together");
  if (problem.has(kValues)) {
    call.values = check_side(problem, kValues, kValueCache, kValueScale);
    require(problem, problem.spec(kValues).shape[0] == call.tokens,
            operand_text(problem, kValues) + " and " + operand_text(problem, kKeys) +
                " differ in tokens");
    check_pages(problem, call);
    require(problem,
            problem.spec(kValues).dtype == problem.dtype &&
                problem.spec(kValueCache).dtype == problem.spec(kKeyCache).dtype,
            "keys and values must have one dtype, and so must their caches");
  } else {
    require(problem, !problem.has(kValueScale), "value_scale belongs to a value_cache");
  }
  check_places(problem, call);
  problem.key = "types=" + problem.types.name() + ";tokens=" + bucket(call.tokens) +
                pool_key(call.keys) + ";values=" + std::to_string(call.values.dim) +
                ";own=" + (has_own_scales(problem, kKeyScale, call.keys) ? "1" : "0") +
                (has_own_scales(problem, kValueScale, call.values) ? "1" : "0");
  problem.set_details(call);
}

void validate_append_backward(Problem& problem) {
  problem.dtype = problem.spec(kKeyCache).dtype;
  AppendProblem call{.tokens = 0, .mapped = problem.has(kSlotMapping)};
  call.tokens = tokens_option(problem, call.mapped);
  require(problem, call.tokens < kMost / 4, "counts tokens to 2^29");
  call.keys = check_gradient(problem, kKeys, kKeyCache, call.tokens);
  const bool has_values = problem.has(kValueCache);
  require(problem, has_values || !problem.requested[kValues], "grad_values needs grad_value_cache");
  problem.requested[kValues] = has_values;
  if (has_values) {
    require(problem, problem.spec(kValueCache).dtype == problem.dtype,
            "gradients of keys and values must have one dtype");
    call.values = check_gradient(problem, kValues, kValueCache, call.tokens);
    check_pages(problem, call);
  }
  check_places(problem, call);
  problem.key = "dtype=" + std::string(to_string(problem.dtype)) +
                ";tokens=" + bucket(call.tokens) + pool_key(call.keys) +
                ";values=" + std::to_string(call.values.dim);
  problem.set_details(call);
}

void validate_copy_pages(Problem& problem) {
  const TensorSpec& pool = problem.spec(kPool);
  problem.dtype = pool.dtype;
  require(problem, pool.shape.size() >= 2 && pool.shape.size() <= 4,
          operand_text(problem, kPool) + " must have two to four axes");
  require_rows(problem, kPool);
  CopyProblem call{.pairs = problem.spec(kSourcePages).elements(),
                   .source_pages = pool.shape[0],
                   .target_pages = pool.shape[0],
                   .one_pool = !problem.has(kSource),
                   .page = Shape(pool.shape.begin() + 1, pool.shape.end())};
  if (problem.has(kSource)) {
    const TensorSpec& source = problem.spec(kSource);
    require_rows(problem, kSource);
    Shape expected = pool.shape;
    if (!source.shape.empty()) expected[0] = source.shape[0];
    require(problem, source.shape == expected && source.dtype == pool.dtype,
            operand_text(problem, kSource) + " and " + operand_text(problem, kPool) +
                " differ in more than their pages");
    call.source_pages = source.shape[0];
  }
  require(problem, std::max({call.source_pages, call.target_pages, 4 * call.pairs}) < kMost,
          "counts pages and pairs to 2^31");
  require_list(problem, kSourcePages, call.pairs);
  require_list(problem, kTargetPages, call.pairs);
  std::int64_t page = 1;
  for (const std::int64_t extent : call.page) page *= extent;
  problem.key = "dtype=" + std::string(to_string(problem.dtype)) + ";pairs=" + bucket(call.pairs) +
                ";page=" + bucket(page) + ";one=" + (call.one_pool ? "1" : "0");
  problem.set_details(std::move(call));
}

void validate_quantise(Problem& problem) {
  problem.dtype = problem.spec(kFloats).dtype;
  require_pool(problem, kFloats);
  const PoolShape pool = pool_of(problem.spec(kFloats));
  constexpr DType kTypes[] = {DType::kI8, DType::kI4, DType::kE4M3FN, DType::kE5M2};
  const DType codes =
      kTypes[kernel::choice_option(problem, "dtype", {"i8", "i4", "e4m3fn", "e5m2"})];
  const auto scale_of = static_cast<ScaleOf>(
      kernel::choice_option(problem, "scale_of", {"token_head", "page", "head", "tensor"}));
  problem.infer_output(kCodes, codes, problem.spec(kFloats).shape);
  require_rows(problem, kCodes);
  Shape scale{1, 1, 1};
  if (scale_of == ScaleOf::kTokenHead) scale = {pool.pages, pool.heads, pool.page_size};
  if (scale_of == ScaleOf::kPage) scale[0] = pool.pages;
  if (scale_of == ScaleOf::kHead) scale[1] = pool.heads;
  problem.infer_output(kScale, DType::kF32, std::move(scale));
  problem.key = "dtype=" + std::string(to_string(problem.dtype)) +
                ";codes=" + std::string(to_string(codes)) + ";slots=" + bucket(pool.slots()) +
                pool_key(pool) + ";scale=" + std::to_string(static_cast<int>(scale_of));
  problem.set_details(CodesProblem{.pool = pool, .scale_of = scale_of});
}

void validate_dequantise(Problem& problem) {
  require_pool(problem, kFromCodes);
  const PoolShape pool = pool_of(problem.spec(kFromCodes));
  require_scale(problem, kFromScale, pool);
  constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  problem.dtype = kTypes[kernel::choice_option(problem, "dtype", {"f32", "f16", "bf16"})];
  problem.infer_output(kToFloats, problem.dtype, problem.spec(kFromCodes).shape);
  require_rows(problem, kToFloats);
  problem.key = "dtype=" + std::string(to_string(problem.dtype)) +
                ";codes=" + std::string(to_string(problem.spec(kFromCodes).dtype)) +
                ";slots=" + bucket(pool.slots()) + pool_key(pool);
  problem.set_details(CodesProblem{.pool = pool});
}

}  // namespace tessera::operations::kv_cache
