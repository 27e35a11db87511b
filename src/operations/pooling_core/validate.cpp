// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "kernel/option_access.hpp"
#include "operations/pooling_core/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::pooling {
namespace {

constexpr std::int64_t kMaxLength = std::int64_t{1} << 30;  // so that kernels add in 32 bits

// Reads the feature axes, those behind the first `leading`.
void read_features(const Problem& problem, std::size_t slot, std::size_t leading,
                   const std::string& shapes, MeanPoolingProblem& call) {
  const TensorSpec& spec = problem.spec(slot);
  const std::size_t rank = spec.shape.size();
  require(problem, rank == leading + 1 || rank == leading + 2,
          operand_text(problem, slot) + " must be " + shapes);
  require(problem, spec.shape.back() <= 1 || spec.strides.back() == 1,
          problem.operation->operands[slot].name + " must be contiguous along its last axis");
  call.has_heads = rank == leading + 2;
  call.heads = call.has_heads ? spec.shape[leading] : 1;
  call.dim = spec.shape.back();
}

Shape with_features(Shape leading, const MeanPoolingProblem& call) {
  if (call.has_heads) leading.push_back(call.heads);
  leading.push_back(call.dim);
  return leading;
}

// Number of sequences of a packed call.
std::int64_t sequences_of(const Problem& problem, std::size_t slot) {
  const Shape& shape = problem.spec(slot).shape;
  require(problem, shape.size() == 1 && shape[0] >= 1,
          operand_text(problem, slot) +
              " must have one axis, of one element more than there are sequences");
  return shape[0] - 1;
}

std::string make_key(const Problem& problem, const MeanPoolingProblem& call) {
  constexpr std::array<std::string_view, 5> kNames{"chunks", "lengths", "mask", "sequences",
                                                   "sequence_chunks"};
  std::string key = "dtype=" + std::string(to_string(problem.dtype)) +
                    ";pool=" + std::string(kNames[static_cast<std::size_t>(call.pool)]) +
                    ";dim=" + bucket(call.dim) + ";heads=" + bucket(call.heads) +
                    ";tokens=" + bucket(call.tokens) + ";rows=" + bucket(call.rows) +
                    ";batch=" + bucket(call.batch);
  if (call.pool == Pool::kSequenceChunks) key += ";chunk=" + bucket(call.chunk);
  return key;
}

// What holds for all four, once x and y are known by shape.
void finish(Problem& problem, MeanPoolingProblem call) {
  const std::size_t output = call.backward ? call.x_slot : call.y_slot;
  require(problem, std::max({call.tokens, call.rows, call.sequences}) < kMaxLength,
          "sequences must be shorter than 2^30 tokens, and their means fewer than 2^30");
  const TensorSpec& spec = problem.spec(output);
  require(problem, spec.shape.back() <= 1 || spec.strides.back() == 1,
          problem.operation->operands[output].name + " must be contiguous along its last axis");
  call.chunk = std::clamp<std::int64_t>(call.chunk, 1, std::max<std::int64_t>(call.tokens, 1));
  problem.key = make_key(problem, call);
  problem.set_details(call);
}

// ---- whole sequences ----------------------------------------------------------------------------

// Which of the index operands the call has.
MeanPoolingProblem begin_sequence_mean(Problem& problem, bool backward) {
  problem.dtype = problem.spec(kSequenceFrom).dtype;
  MeanPoolingProblem call;
  call.backward = backward;
  call.x_slot = backward ? kSequenceTo : kSequenceFrom;
  call.y_slot = backward ? kSequenceFrom : kSequenceTo;
  call.chunk = std::numeric_limits<std::int64_t>::max();
  for (const auto& [slot, pool] :
       {std::pair{kSequenceLengths, Pool::kLengths}, std::pair{kSequenceMask, Pool::kMask},
        std::pair{kSequenceCuSeqlens, Pool::kSequences}}) {
    if (!problem.has(slot)) continue;
    require(problem, !call.index_slot, "takes one of lengths, mask and cu_seqlens, not two");
    call.index_slot = slot;
    call.pool = pool;
  }
  call.y_has_rows = call.packed();
  if (call.packed()) {
    call.sequences = sequences_of(problem, kSequenceCuSeqlens);
    call.rows = call.sequences;
  } else {
    call.rows = 1;
  }
  return call;
}

void check_sequence_index(const Problem& problem, const MeanPoolingProblem& call) {
  if (call.pool == Pool::kLengths) require_shape(problem, kSequenceLengths, {call.batch});
  if (call.pool == Pool::kMask) require_shape(problem, kSequenceMask, {call.batch, call.tokens});
}

}  // namespace

void validate_sequence_mean(Problem& problem) {
  MeanPoolingProblem call = begin_sequence_mean(problem, false);
  const Shape& shape = problem.spec(kSequenceFrom).shape;
  if (call.packed()) {
    read_features(problem, kSequenceFrom, 1, "[total, dim] or [total, heads, dim], with cu_seqlens",
                  call);
    call.tokens = shape[0];
  } else {
    read_features(problem, kSequenceFrom, 2, "[batch, seq, dim] or [batch, seq, heads, dim]", call);
    call.batch = shape[0];
    call.tokens = shape[1];
  }
  check_sequence_index(problem, call);
  problem.infer_output(kSequenceTo, problem.dtype,
                       with_features({call.packed() ? call.rows : call.batch}, call));
  finish(problem, call);
}

void validate_sequence_mean_backward(Problem& problem) {
  MeanPoolingProblem call = begin_sequence_mean(problem, true);
  const Shape& shape = problem.spec(kSequenceFrom).shape;
  const auto tokens = integer_option(problem, "tokens", 0);
  require(problem, tokens.has_value(), "option 'tokens' must say how many rows grad_input has");
  call.tokens = *tokens;
  if (call.packed()) {
    read_features(problem, kSequenceFrom, 1,
                  "[sequences, dim] or [sequences, heads, dim], with cu_seqlens", call);
    require(problem, shape[0] == call.rows,
            operand_text(problem, kSequenceFrom) + " must have a row for each of the " +
                std::to_string(call.rows) + " sequences");
  } else {
    read_features(problem, kSequenceFrom, 1, "[batch, dim] or [batch, heads, dim]", call);
    call.batch = shape[0];
  }
  check_sequence_index(problem, call);
  problem.infer_output(
      kSequenceTo, problem.dtype,
      with_features(call.packed() ? Shape{call.tokens} : Shape{call.batch, call.tokens}, call));
  finish(problem, call);
}

// ---- chunks -------------------------------------------------------------------------------------

namespace {

MeanPoolingProblem begin_chunk_mean(Problem& problem, bool backward) {
  problem.dtype = problem.spec(kChunkFrom).dtype;
  MeanPoolingProblem call;
  call.backward = backward;
  call.x_slot = backward ? kChunkTo : kChunkFrom;
  call.y_slot = backward ? kChunkFrom : kChunkTo;
  call.chunk = *integer_option(problem, "chunk", 1);
  call.y_has_rows = true;
  if (problem.has(kChunkCuSeqlens)) {
    call.pool = Pool::kSequenceChunks;
    call.index_slot = kChunkCuSeqlens;
    call.sequences = sequences_of(problem, kChunkCuSeqlens);
  }
  return call;
}

// Rounded up; a chunk may be as large as 64 bits hold, so nothing is added to it.
std::int64_t chunks_of(std::int64_t tokens, std::int64_t chunk) {
  return tokens / chunk + (tokens % chunk != 0 ? 1 : 0);
}

}  // namespace

void validate_chunk_mean(Problem& problem) {
  MeanPoolingProblem call = begin_chunk_mean(problem, false);
  const Shape& shape = problem.spec(kChunkFrom).shape;
  const auto chunks = integer_option(problem, "chunks", 0);
  if (call.packed()) {
    read_features(problem, kChunkFrom, 1, "[total, dim] or [total, heads, dim], with cu_seqlens",
                  call);
    require(problem, chunks.has_value(),
            "option 'chunks' must say how many rows the output has: with cu_seqlens it depends on "
            "the data");
    call.tokens = shape[0];
    call.rows = *chunks;
  } else {
    read_features(problem, kChunkFrom, 2, "[batch, seq, dim] or [batch, seq, heads, dim]", call);
    require(problem, !chunks.has_value(), "option 'chunks' is for calls with cu_seqlens only");
    call.batch = shape[0];
    call.tokens = shape[1];
    call.rows = chunks_of(call.tokens, call.chunk);
  }
  problem.infer_output(
      kChunkTo, problem.dtype,
      with_features(call.packed() ? Shape{call.rows} : Shape{call.batch, call.rows}, call));
  finish(problem, call);
}

void validate_chunk_mean_backward(Problem& problem) {
  MeanPoolingProblem call = begin_chunk_mean(problem, true);
  const Shape& shape = problem.spec(kChunkFrom).shape;
  const auto tokens = integer_option(problem, "tokens", 0);
  require(problem, tokens.has_value(), "option 'tokens' must say how many rows grad_input has");
  call.tokens = *tokens;
  if (call.packed()) {
    read_features(problem, kChunkFrom, 1, "[chunks, dim] or [chunks, heads, dim], with cu_seqlens",
                  call);
    call.rows = shape[0];
  } else {
    read_features(problem, kChunkFrom, 2, "[batch, chunks, dim] or [batch, chunks, heads, dim]",
                  call);
    call.batch = shape[0];
    call.rows = shape[1];
    require(problem, call.rows == chunks_of(call.tokens, call.chunk),
            operand_text(problem, kChunkFrom) + " must have " +
                std::to_string(chunks_of(call.tokens, call.chunk)) +
                " rows, one for each chunk of " + std::to_string(call.chunk) + " of the " +
                std::to_string(call.tokens) + " tokens");
  }
  problem.infer_output(
      kChunkTo, problem.dtype,
      with_features(call.packed() ? Shape{call.tokens} : Shape{call.batch, call.tokens}, call));
  finish(problem, call);
}

}  // namespace tessera::operations::pooling
