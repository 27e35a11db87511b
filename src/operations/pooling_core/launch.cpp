// SPDX-License-Identifier: Apache-2.0
#include "operations/pooling_core/launch.hpp"

#include <algorithm>

namespace tessera::operations::pooling {
namespace {

// Strides of x or y, which lack some of the axes.
struct Strides {
  std::int64_t batch = 0, row = 0, head = 0;
};

Strides strides_of(const Problem& problem, std::size_t slot) {
  const auto& call = problem.as<MeanPoolingProblem>();
  const Shape& strides = problem.spec(slot).strides;
  std::size_t axis = 0;
  Strides result;
  if (!call.packed()) result.batch = strides[axis++];
  if (slot == call.x_slot || call.y_has_rows) result.row = strides[axis++];
  if (call.has_heads) result.head = strides[axis];
  return result;
}

}  // namespace

Features features_of(const Problem& problem) {
  const auto& call = problem.as<MeanPoolingProblem>();
  const bool joined = call.heads <= 1 || (strides_of(problem, call.x_slot).head == call.dim &&
                                          strides_of(problem, call.y_slot).head == call.dim);
  if (joined) return {.heads = 1, .dim = call.features()};
  return {.heads = call.heads, .dim = call.dim};
}

bool is_aligned(const Problem& problem) {
  const auto& call = problem.as<MeanPoolingProblem>();
  const Features features = features_of(problem);
  if (features.dim % 4 != 0) return false;
  return std::ranges::all_of(
      std::initializer_list<std::size_t>{call.x_slot, call.y_slot}, [&](std::size_t slot) {
        const Strides strides = strides_of(problem, slot);
        return problem.spec(slot).offset % 4 == 0 && strides.batch % 4 == 0 &&
               strides.row % 4 == 0 && (features.heads == 1 || strides.head % 4 == 0);
      });
}

MeanPoolingScratch scratch_of(const Problem& problem, std::uint32_t splits) {
  const auto& call = problem.as<MeanPoolingProblem>();
  const auto wide = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  MeanPoolingScratch scratch;
  if (call.pool == Pool::kSequenceChunks) scratch.prepared = wide(call.sequences) + 1;
  if (call.pool == Pool::kMask && call.backward) scratch.prepared = wide(call.batch);
  scratch.bytes = 4 * scratch.prepared;
  if (splits <= 1) return scratch;
  const std::uint64_t partial_rows = splits * wide(call.batch * call.rows);
  scratch.partial_sums = (scratch.prepared + 3) / 4;
  scratch.partial_counts =
      4 * (scratch.partial_sums + partial_rows * wide(features_of(problem).columns()));
  scratch.bytes = 4 * (scratch.partial_counts + partial_rows);
  return scratch;
}

abi::MeanPoolingArgs arguments(const Problem& problem, std::uint32_t splits) {
  const auto& call = problem.as<MeanPoolingProblem>();
  const auto narrow = [](auto value) { return static_cast<abi::u32>(value); };
  const Features features = features_of(problem);
  const Strides x = strides_of(problem, call.x_slot), y = strides_of(problem, call.y_slot);
  const MeanPoolingScratch scratch = scratch_of(problem, splits);
  abi::MeanPoolingArgs args{};
  args.pool = static_cast<abi::u32>(call.pool);
  args.batch = narrow(call.batch);
  args.tokens = narrow(call.tokens);
  args.rows = narrow(call.rows);
  args.sequences = narrow(call.sequences);
  args.chunk = narrow(call.chunk);
  args.heads = narrow(features.heads);
  args.dim = narrow(features.dim);
  args.x_offset = narrow(problem.spec(call.x_slot).offset);
  args.x_stride_batch = narrow(x.batch);
  args.x_stride_token = narrow(x.row);
  args.x_stride_head = narrow(x.head);
  args.y_offset = narrow(problem.spec(call.y_slot).offset);
  args.y_stride_batch = narrow(y.batch);
  args.y_stride_row = narrow(y.row);
  args.y_stride_head = narrow(y.head);
  args.partial_sums = narrow(scratch.partial_sums);
  args.partial_counts = narrow(scratch.partial_counts);
  if (call.index_slot) {
    const TensorSpec& index = problem.spec(*call.index_slot);
    args.index_offset = narrow(index.offset);
    args.index_stride = narrow(index.strides[0]);
    if (call.pool == Pool::kMask) args.mask_stride = narrow(index.strides[1]);
  }
  return args;
}

}  // namespace tessera::operations::pooling
