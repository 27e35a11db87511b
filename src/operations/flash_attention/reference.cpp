// SPDX-License-Identifier: Apache-2.0
// The definition of flash attention: one row at a time, double precision.
#include "operations/flash_attention/reference.hpp"

#include <cmath>
#include <limits>

#include "base/parallel.hpp"
#include "operations/flash_attention/problem.hpp"

namespace tessera::operations {

AttentionOracle::AttentionOracle(const Problem& problem, std::span<const HostTensor> tensors)
    : call_(problem.as<FlashAttentionProblem>()) {
  const std::vector<double> query = tensors[kQuery].read();
  const std::vector<double> key = tensors[kKey].read();
  const std::vector<double> value = tensors[kValue].read();
  query_ = to_heads(query, call_.q_len, call_.heads, call_.head_dim);
  key_ = to_heads(key, call_.kv_len, call_.kv_heads, call_.head_dim);
  value_ = to_heads(value, call_.kv_len, call_.kv_heads, call_.value_dim);
}

std::vector<Matrix> AttentionOracle::to_heads(const std::vector<double>& flat, std::int64_t rows,
                                              std::int64_t heads, std::int64_t dim) const {
  std::vector<Matrix> result(static_cast<std::size_t>(call_.batch * heads));
  for (std::int64_t batch = 0; batch < call_.batch; ++batch) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const double* start = flat.data() + (batch * rows * heads + head) * dim;
      result[static_cast<std::size_t>(batch * heads + head)] =
          Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>(start, rows, dim,
                                                            Eigen::OuterStride<>(heads * dim));
    }
  }
  return result;
}

AttentionRow AttentionOracle::row(std::int64_t batch, std::int64_t head, std::int64_t i) const {
  const auto q_index = static_cast<std::size_t>(batch * call_.heads + head);
  const auto kv_index = static_cast<std::size_t>(batch * call_.kv_heads + head / call_.group());
  AttentionRow row{.output = Eigen::VectorXd::Zero(call_.value_dim),
                   .magnitude = Eigen::VectorXd::Zero(call_.value_dim),
                   .log_sum_exp = -std::numeric_limits<double>::infinity()};
  const std::int64_t first = call_.first_key(i);
  const std::int64_t count = call_.last_key(i) - first;
  if (count <= 0) return row;
  const auto q = query_[q_index].row(i);
  const auto k = key_[kv_index].middleRows(first, count);
  const auto v = value_[kv_index].middleRows(first, count);

  Eigen::VectorXd score = call_.scale * (k * q.transpose());
  row.score_magnitude =
      std::fabs(call_.scale) * (k.cwiseAbs() * q.transpose().cwiseAbs()).maxCoeff();
  if (call_.soft_cap > 0) score = call_.soft_cap * (score / call_.soft_cap).array().tanh();
  const double maximum = score.maxCoeff();
  const Eigen::VectorXd weight = (score.array() - maximum).exp();
  const double sum = weight.sum();
  row.output = v.transpose() * weight / sum;
  row.magnitude = v.cwiseAbs().transpose() * weight / sum;
  row.log_sum_exp = maximum + std::log(sum);
  row.keys = count;
  return row;
}

void reference_flash_attention(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<FlashAttentionProblem>();
  const AttentionOracle oracle(problem, tensors);
  std::vector<double> output(static_cast<std::size_t>(problem.spec(kOutput).elements()));
  std::vector<double> log_sum_exp(static_cast<std::size_t>(call.batch * call.heads * call.q_len));
  parallel_for(log_sum_exp.size(), [&](std::size_t at) {
    const auto i = static_cast<std::int64_t>(at) % call.q_len;
    const auto head = static_cast<std::int64_t>(at) / call.q_len % call.heads;
    const auto batch = static_cast<std::int64_t>(at) / call.q_len / call.heads;
    const AttentionRow row = oracle.row(batch, head, i);
    const std::int64_t start = ((batch * call.q_len + i) * call.heads + head) * call.value_dim;
    Eigen::Map<Eigen::VectorXd>(output.data() + start, call.value_dim) = row.output;
    log_sum_exp[at] = row.log_sum_exp;
  });
  tensors[kOutput].write(output);
  if (problem.has(kLogSumExp)) tensors[kLogSumExp].write(log_sum_exp);
}

}  // namespace tessera::operations
