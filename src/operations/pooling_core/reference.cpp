// SPDX-License-Identifier: Apache-2.0
// The definition of mean pooling, double precision.
#include "operations/pooling_core/reference.hpp"

#include <algorithm>

namespace tessera::operations::pooling {
namespace {

std::int64_t clamped(double value, std::int64_t low, std::int64_t high) {
  return std::clamp(static_cast<std::int64_t>(value), low, high);
}

}  // namespace

MeanPoolingOracle::MeanPoolingOracle(const Problem& problem, std::span<const HostTensor> tensors)
    : call_(problem.as<MeanPoolingProblem>()) {
  const std::vector<double> index =
      call_.index_slot ? tensors[*call_.index_slot].read() : std::vector<double>{};
  const auto at = [&](std::int64_t i) { return index[static_cast<std::size_t>(i)]; };
  switch (call_.pool) {
    case Pool::kChunks:
      for (std::int64_t batch = 0; batch < call_.batch; ++batch) {
        for (std::int64_t row = 0; row < call_.rows; ++row) {
          spans_.push_back(
              {batch, row, row * call_.chunk, std::min((row + 1) * call_.chunk, call_.tokens)});
        }
      }
      break;
    case Pool::kLengths:
      for (std::int64_t batch = 0; batch < call_.batch; ++batch) {
        spans_.push_back({batch, 0, 0, clamped(at(batch), 0, call_.tokens)});
      }
      break;
    case Pool::kMask:
      mask_ = index;
      for (std::int64_t batch = 0; batch < call_.batch; ++batch)
        spans_.push_back({batch, 0, 0, call_.tokens});
      break;
    case Pool::kSequences:
    case Pool::kSequenceChunks:
      for (std::int64_t sequence = 0; sequence < call_.sequences; ++sequence) {
        const std::int64_t begin = clamped(at(sequence), 0, call_.tokens);
        const std::int64_t end = clamped(at(sequence + 1), begin, call_.tokens);
        if (call_.pool == Pool::kSequences) {
          spans_.push_back({0, sequence, begin, end});
          continue;
        }
        for (std::int64_t first = begin; first < end; first += call_.chunk) {
          const auto row = static_cast<std::int64_t>(spans_.size());
          if (row < call_.rows)
            spans_.push_back({0, row, first, std::min(first + call_.chunk, end)});
        }
      }
  }
}

bool MeanPoolingOracle::counted(std::int64_t batch, std::int64_t token) const {
  return mask_.empty() || mask_[static_cast<std::size_t>(batch * call_.tokens + token)] != 0;
}

std::int64_t MeanPoolingOracle::count(const TokenSpan& span) const {
  std::int64_t sum = 0;
  for (std::int64_t token = span.begin; token < span.end; ++token)
    sum += counted(span.batch, token) ? 1 : 0;
  return sum;
}

std::vector<std::int64_t> MeanPoolingOracle::counts() const {
  std::vector<std::int64_t> result(static_cast<std::size_t>(call_.batch * call_.rows));
  for (const TokenSpan& span : spans_) {
    result[static_cast<std::size_t>(span.batch * call_.rows + span.row)] = count(span);
  }
  return result;
}

std::vector<double> MeanPoolingOracle::means(const std::vector<double>& x) const {
  const std::int64_t features = call_.features();
  std::vector<double> y(static_cast<std::size_t>(call_.batch * call_.rows * features));
  for (const TokenSpan& span : spans_) {
    double* to = y.data() + (span.batch * call_.rows + span.row) * features;
    const auto tokens = static_cast<double>(count(span));
    for (std::int64_t token = span.begin; token < span.end; ++token) {
      if (!counted(span.batch, token)) continue;
      const double* from = x.data() + (span.batch * call_.tokens + token) * features;
      for (std::int64_t i = 0; i < features; ++i) to[i] += from[i];
    }
    for (std::int64_t i = 0; tokens > 0 && i < features; ++i) to[i] /= tokens;
  }
  return y;
}

std::vector<double> MeanPoolingOracle::gradients(const std::vector<double>& y) const {
  const std::int64_t features = call_.features();
  std::vector<double> x(static_cast<std::size_t>(call_.batch * call_.tokens * features));
  for (const TokenSpan& span : spans_) {
    const double* from = y.data() + (span.batch * call_.rows + span.row) * features;
    const auto tokens = static_cast<double>(count(span));
    for (std::int64_t token = span.begin; token < span.end; ++token) {
      if (!counted(span.batch, token)) continue;
      double* to = x.data() + (span.batch * call_.tokens + token) * features;
      for (std::int64_t i = 0; i < features; ++i) to[i] += from[i] / tokens;
    }
  }
  return x;
}

void reference_mean_pooling(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<MeanPoolingProblem>();
  const MeanPoolingOracle oracle(problem, tensors);
  if (call.backward) {
    tensors[call.x_slot].write(oracle.gradients(tensors[call.y_slot].read()));
  } else {
    tensors[call.y_slot].write(oracle.means(tensors[call.x_slot].read()));
  }
}

}  // namespace tessera::operations::pooling
