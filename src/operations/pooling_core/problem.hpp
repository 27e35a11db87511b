// SPDX-License-Identifier: Apache-2.0
// A mean pooling call after validation. The four operations share all of their inside: x is the
// operand that has tokens, y the one that has rows, and the forward operations write y from x, the
// backward ones x from y.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "operations/common/ways.hpp"
#include "operations/pooling_core/args.h"
#include "tessera/record.hpp"

namespace tessera::operations::pooling {

// Which tokens a row is the mean of.
enum class Pool : std::uint32_t {
  kChunks = POOL_CHUNKS,
  kLengths = POOL_LENGTHS,
  kMask = POOL_MASK,
  kSequences = POOL_SEQUENCES,
  kSequenceChunks = POOL_SEQUENCE_CHUNKS,
};

enum SequenceMeanSlot : std::size_t {
  kSequenceFrom,
  kSequenceLengths,
  kSequenceMask,
  kSequenceCuSeqlens,
  kSequenceTo
};
enum ChunkMeanSlot : std::size_t { kChunkFrom, kChunkCuSeqlens, kChunkTo };

struct MeanPoolingProblem {
  Pool pool = Pool::kChunks;
  bool backward = false;
  std::size_t x_slot = 0, y_slot = 0;
  std::optional<std::size_t> index_slot{};       // of lengths, mask or cu_seqlens
  std::int64_t batch = 1, tokens = 0, rows = 0;  // tokens and rows of one batch entry
  std::int64_t sequences = 0;                    // packed in x; 0 = none, or x is not packed
  std::int64_t chunk = 1;                        // tokens of a row, at most
  std::int64_t heads = 1, dim = 1;
  bool y_has_rows =
      false;  // y has an axis of rows: it lacks one where each batch entry has one mean
  bool has_heads = false;  // x and y have an axis of heads

  bool packed() const { return pool == Pool::kSequences || pool == Pool::kSequenceChunks; }
  std::int64_t features() const { return heads * dim; }
};

void validate_sequence_mean(Problem& problem);
void validate_sequence_mean_backward(Problem& problem);
void validate_chunk_mean(Problem& problem);
void validate_chunk_mean_backward(Problem& problem);
void reference_mean_pooling(const Problem& problem, std::span<HostTensor> tensors);
// `chunked`: of the chunk operations.
Workload mean_pooling_workload(bool chunked, bool backward);
std::vector<Way> mean_pooling_ways(bool chunked, bool backward);

}  // namespace tessera::operations::pooling
