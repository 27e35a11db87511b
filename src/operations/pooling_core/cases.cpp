// SPDX-License-Identifier: Apache-2.0
// The calls that tests, benchmarks and the tuner make up.
#include "operations/common/cases.hpp"

#include <algorithm>

#include "operations/pooling_core/workload.hpp"

namespace tessera::operations::pooling {
namespace {

// Features stay neighbours, all other axes lie in memory in the opposite order.
TensorSpec view(DType dtype, const Shape& shape, std::int64_t gap) {
  Shape outermost(shape.size() - 1);
  for (std::size_t i = 0; i < outermost.size(); ++i)
    outermost[i] = static_cast<std::int64_t>(outermost.size() - 1 - i);
  return strided_view(dtype, shape, outermost, gap, gap);
}

// One index in three, from the second on.
TensorSpec sparse(DType dtype, const Shape& shape) {
  TensorSpec spec = TensorSpec::contiguous(dtype, shape);
  for (std::int64_t& stride : spec.strides) stride *= 3;
  spec.offset = 1;
  return spec;
}

}  // namespace

Case MeanPoolingCases::make(std::string name, std::string why, DType dtype,
                            const MeanPoolingShape& s, std::string data) const {
  const bool packed = s.pool == Pool::kSequences || s.pool == Pool::kSequenceChunks;
  const auto with_features = [&](Shape leading) {
    if (s.heads > 0) leading.push_back(s.heads);
    leading.push_back(s.dim);
    return leading;
  };
  const std::int64_t dense_rows = (s.tokens + s.chunk - 1) / s.chunk;
  const Shape x = with_features(packed ? Shape{s.tokens} : Shape{s.batch, s.tokens});
  const Shape y = with_features(s.pool == Pool::kSequenceChunks ? Shape{s.rows}
                                : packed                        ? Shape{s.sequences}
                                : chunked_                      ? Shape{s.batch, dense_rows}
                                                                : Shape{s.batch});
  const auto operand = [&](const Shape& shape) {
    return s.gap < 0 ? TensorSpec::contiguous(dtype, shape) : view(dtype, shape, s.gap);
  };
  const auto index = [&](DType type, const Shape& shape) {
    return s.gap < 0 ? TensorSpec::contiguous(type, shape) : sparse(type, shape);
  };

  Case result{.name = std::move(name), .why = std::move(why), .data = std::move(data)};
  result.operands.resize(chunked_ ? kChunkTo + 1 : kSequenceTo + 1);
  result.operands.front() = operand(backward_ ? y : x);
  if (s.gap >= 0) result.operands.back() = operand(backward_ ? x : y);
  const std::size_t cu_seqlens =
      chunked_ ? std::size_t{kChunkCuSeqlens} : std::size_t{kSequenceCuSeqlens};
  if (packed) result.operands[cu_seqlens] = index(DType::kI32, {s.sequences + 1});
  if (s.pool == Pool::kLengths) result.operands[kSequenceLengths] = index(DType::kI32, {s.batch});
  if (s.pool == Pool::kMask)
    result.operands[kSequenceMask] = index(DType::kU8, {s.batch, s.tokens});
  if (chunked_) result.options["chunk"] = s.chunk;
  if (backward_) result.options["tokens"] = s.tokens;
  if (chunked_ && packed && !backward_) result.options["chunks"] = s.rows;
  return result;
}

void MeanPoolingCases::add_sequence_cases(std::vector<Case>& table, DType dtype) const {
  const auto add = [&](const char* name, const char* why, const MeanPoolingShape& shape,
                       const char* data = "normal") {
    table.push_back(make(name, why, dtype, shape, data));
  };
  add("single", "one token, one feature: the mean is the token", {.dim = 1});
  add("small", "several batch entries", {.batch = 4, .tokens = 20, .dim = 64});
  add("odd", "sizes that divide no tile and no vector",
      {.batch = 3, .tokens = 29, .heads = 5, .dim = 7});
  add("long", "more tokens than any work-group has lanes, few features",
      {.tokens = 5003, .dim = 12});
  add("wide", "more features than a work-group has columns",
      {.batch = 2, .tokens = 9, .heads = 8, .dim = 200});
  add("no_tokens", "seq 0: the mean of nothing is 0", {.batch = 2, .tokens = 0, .dim = 8});
  add("no_batch", "batch 0: nothing to write", {.batch = 0, .tokens = 5, .dim = 8});
  add("large", "sums beyond what half holds: they must be in float",
      {.batch = 2, .tokens = 50, .dim = 24}, "large");
  add("constant", "equal tokens: the mean is that token", {.batch = 2, .tokens = 33, .dim = 24},
      "constant");
  add("strided", "all axes in unusual order, odd gaps and offsets",
      {.batch = 3, .tokens = 21, .heads = 4, .dim = 10, .gap = 3});
  add("strided_aligned", "unusual order, but vectors are aligned",
      {.batch = 3, .tokens = 21, .heads = 4, .dim = 12, .gap = 4});

  const MeanPoolingShape lengths{
      .batch = 6, .tokens = 37, .heads = 3, .dim = 20, .pool = Pool::kLengths};
  add("lengths", "lengths 0, seq and between", lengths);
  add("lengths_out_of_range", "lengths below 0 and beyond seq count as 0 and seq", lengths,
      "out_of_range");
  add("lengths_nan", "NaN behind a sequence's length must not show", lengths, "hidden_nan");
  add("lengths_strided", "one length in three",
      {.batch = 6, .tokens = 37, .heads = 3, .dim = 5, .pool = Pool::kLengths, .gap = 1});

  const MeanPoolingShape mask{.batch = 5, .tokens = 43, .dim = 36, .pool = Pool::kMask};
  add("mask", "some tokens, none and all; non-zero is not only 1", mask);
  add("mask_nan", "NaN in masked tokens must not show", mask, "hidden_nan");
  add("mask_long", "the mask of a long sequence", {.tokens = 3001, .dim = 16, .pool = Pool::kMask});
  add("mask_strided", "mask bytes at odd addresses, with gaps",
      {.batch = 5, .tokens = 43, .heads = 2, .dim = 6, .pool = Pool::kMask, .gap = 1});

  const MeanPoolingShape packed{.tokens = 101, .dim = 24, .pool = Pool::kSequences, .sequences = 9};
  add("packed", "sequences of length 0 at the start, between and at the end", packed);
  add("packed_heads", "the same with heads of an odd dim",
      {.tokens = 101, .heads = 3, .dim = 7, .pool = Pool::kSequences, .sequences = 9});
  add("packed_gap",
      "rows before the first and after the last sequence belong to none, and may hold NaN", packed,
      "gap");
  add("packed_out_of_range", "boundaries below 0 and beyond the input count as its ends", packed,
      "out_of_range");
  if (!backward_)
    add("packed_decreasing", "boundaries that decrease: sequences overlap", packed, "decreasing");
  add("packed_none", "cu_seqlens of one element: no sequence",
      {.tokens = 7, .dim = 8, .pool = Pool::kSequences, .sequences = 0});
  add("packed_empty", "sequences, but no row",
      {.tokens = 0, .dim = 8, .pool = Pool::kSequences, .sequences = 3});
  add("packed_strided", "unusual order, one boundary in three",
      {.tokens = 61, .heads = 2, .dim = 9, .pool = Pool::kSequences, .sequences = 6, .gap = 3});
  add("packed_many", "more sequences than rows",
      {.tokens = 50, .dim = 8, .pool = Pool::kSequences, .sequences = 400});
}

void MeanPoolingCases::add_chunk_cases(std::vector<Case>& table, DType dtype) const {
  const auto add = [&](const char* name, const char* why, const MeanPoolingShape& shape,
                       const char* data = "normal") {
    table.push_back(make(name, why, dtype, shape, data));
  };
  add("single", "one token, one feature, chunk 1: the mean is the token", {.dim = 1, .chunk = 1});
  add("chunk_1", "chunk 1: the output is the input",
      {.batch = 2, .tokens = 19, .heads = 2, .dim = 12, .chunk = 1});
  add("whole", "a chunk that divides seq",
      {.batch = 2, .tokens = 96, .heads = 4, .dim = 16, .chunk = 32});
  add("short_last", "the last chunk has one token",
      {.batch = 2, .tokens = 65, .heads = 4, .dim = 16, .chunk = 32});
  add("odd", "sizes that divide no tile and no vector",
      {.batch = 3, .tokens = 50, .heads = 3, .dim = 7, .chunk = 13});
  add("chunk_beyond", "a chunk longer than seq: one chunk",
      {.batch = 2, .tokens = 20, .dim = 24, .chunk = 1000});
  add("chunk_huge", "the largest chunk that an option can say",
      {.tokens = 20, .dim = 24, .chunk = std::int64_t{1} << 62});
  add("long", "chunks of more tokens than a work-group has lanes",
      {.tokens = 5003, .dim = 12, .chunk = 2048});
  add("no_tokens", "seq 0: no chunk, nothing to write",
      {.batch = 2, .tokens = 0, .heads = 2, .dim = 8});
  add("many", "more rows than a launch has work-groups along an axis",
      {.tokens = 70001, .dim = 4, .chunk = 1});
  add("large", "sums beyond what half holds: they must be in float",
      {.batch = 2, .tokens = 90, .dim = 24}, "large");
  add("strided", "all axes in unusual order, odd gaps and offsets",
      {.batch = 3, .tokens = 41, .heads = 4, .dim = 10, .chunk = 8, .gap = 3});
  add("strided_aligned", "unusual order, but vectors are aligned",
      {.batch = 3, .tokens = 41, .heads = 4, .dim = 12, .chunk = 8, .gap = 4});

  const MeanPoolingShape packed{.tokens = 101,
                                .heads = 2,
                                .dim = 12,
                                .pool = Pool::kSequenceChunks,
                                .sequences = 9,
                                .chunk = 8,
                                .rows = 24};
  MeanPoolingShape other = packed;
  add("packed", "chunks start again with each sequence, some of them empty; rows to spare are 0",
      packed);
  add("packed_gap",
      "rows before the first and after the last sequence belong to none, and may hold NaN", packed,
      "gap");
  add("packed_out_of_range", "boundaries below 0 and beyond the input count as its ends", packed,
      "out_of_range");
  if (!backward_)
    add("packed_decreasing", "boundaries that decrease: sequences overlap", packed, "decreasing");
  other.rows = 5;
  add("packed_few_rows", "fewer rows than chunks: the others are left out", other);
  other.rows = 0;
  add("packed_no_rows", "no rows: no gradient, nothing to average", other);
  other = {.tokens = 101,
           .dim = 5,
           .pool = Pool::kSequenceChunks,
           .sequences = 9,
           .chunk = 1,
           .rows = 101};
  add("packed_chunk_1", "chunk 1: the output is the input", other);
  other.chunk = 1000;
  other.rows = 9;
  add("packed_chunk_beyond", "one chunk for each sequence that is not empty", other);
  add("packed_none", "cu_seqlens of one element: no sequence",
      {.tokens = 7,
       .dim = 8,
       .pool = Pool::kSequenceChunks,
       .sequences = 0,
       .chunk = 4,
       .rows = 2});
  add("packed_empty", "sequences, but no row",
      {.tokens = 0,
       .dim = 8,
       .pool = Pool::kSequenceChunks,
       .sequences = 3,
       .chunk = 4,
       .rows = 2});
  add("packed_strided", "unusual order, one boundary in three",
      {.tokens = 61,
       .heads = 2,
       .dim = 9,
       .pool = Pool::kSequenceChunks,
       .sequences = 6,
       .chunk = 7,
       .rows = 15,
       .gap = 3});
  add("packed_many", "more sequences than the scan of chunks has items",
      {.tokens = 3000,
       .dim = 8,
       .pool = Pool::kSequenceChunks,
       .sequences = 1500,
       .chunk = 3,
       .rows = 2600});
}

std::vector<Case> MeanPoolingCases::conformance(DType dtype) const {
  std::vector<Case> table;
  if (chunked_) {
    add_chunk_cases(table, dtype);
  } else {
    add_sequence_cases(table, dtype);
  }
  return table;
}

std::vector<Case> MeanPoolingCases::edges(DType dtype, const Config& config) const {
  const std::int64_t tokens =
      std::int64_t{config.get("WG_Y", 1)} * config.get("TOKENS", 1) * config.get("SPLITS", 1);
  const std::int64_t features = config.get("BLOCK", 4 * config.get("WG_X", 1));
  std::vector<Case> table;
  for (const int step : {-1, 0, 1}) {
    const std::string suffix = step < 0 ? "-1" : step > 0 ? "+1" : "";
    const auto near = [&](std::int64_t size) { return std::max<std::int64_t>(1, size + step); };
    table.push_back(make("tokens" + suffix,
                         "the edge of the tokens that a work-group takes at a time", dtype,
                         {.batch = 2, .tokens = near(tokens), .dim = 9, .chunk = near(tokens)}));
    table.push_back(make("features" + suffix, "the edge of the features that a work-group owns",
                         dtype, {.batch = 2, .tokens = 11, .dim = near(features), .chunk = 4}));
  }
  MeanPoolingShape packed{
      .tokens = 4 * tokens + 3, .dim = 9, .sequences = 7, .chunk = tokens, .rows = 12};
  packed.pool = chunked_ ? Pool::kSequenceChunks : Pool::kSequences;
  table.push_back(
      make("packed_tokens", "packed sequences around the edge of a work-group", dtype, packed));
  if (!chunked_) {
    table.push_back(make("mask_tokens", "a mask over several work-groups", dtype,
                         {.batch = 3, .tokens = 3 * tokens + 1, .dim = 9, .pool = Pool::kMask}));
  }
  return table;
}

std::vector<Case> MeanPoolingCases::benchmarks(DType dtype) const {
  if (chunked_) {
    return {make("b4_s8192_h8_d128_c32", "key blocks of native sparse attention", dtype,
                 {.batch = 4, .tokens = 8192, .heads = 8, .dim = 128, .chunk = 32}),
            make("b8_s4096_h2_d64_c64", "narrow rows", dtype,
                 {.batch = 8, .tokens = 4096, .heads = 2, .dim = 64, .chunk = 64}),
            make("n32_t32768_h8_d128_c32", "packed sequences", dtype,
                 {.tokens = 32768,
                  .heads = 8,
                  .dim = 128,
                  .pool = Pool::kSequenceChunks,
                  .sequences = 32,
                  .chunk = 32,
                  .rows = 1056})};
  }
  return {
      make("b64_s512_d768", "sentence embeddings", dtype, {.batch = 64, .tokens = 512, .dim = 768}),
      make("b64_s512_d768_mask", "the same with a mask", dtype,
           {.batch = 64, .tokens = 512, .dim = 768, .pool = Pool::kMask}),
      make("b1_s32768_d1024", "one long sequence: little to do in parallel but tokens", dtype,
           {.tokens = 32768, .dim = 1024}),
      make("n64_t32768_d1024", "packed sequences", dtype,
           {.tokens = 32768, .dim = 1024, .pool = Pool::kSequences, .sequences = 64})};
}

}  // namespace tessera::operations::pooling
