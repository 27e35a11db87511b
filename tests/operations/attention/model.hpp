// SPDX-License-Identifier: Apache-2.0
// A model of a kernel on the host: attention in float, tile after tile with an online softmax and
// split keys, and its gradients. It reads operands by their strides as a kernel does, shares no
// code with the reference but the generator of dropout, and makes one mistake on request.
#pragma once

#include <span>
#include <vector>

#include "operations/attention/faults.hpp"
#include "operations/attention_core/problem.hpp"

namespace tessera::testing {

class AttentionModel {
 public:
  AttentionModel(const Problem& problem, std::span<HostTensor> tensors, Fault fault);

  void forward();   // writes output and log_sum_exp
  void backward();  // writes the gradients

 private:
  // An operand by its place in memory, as floats but for indices. Outside it lies NaN, as on the
  // workbench.
  struct View {
    std::vector<double> memory;
    TensorSpec spec;
    std::int64_t wrap = 0;  // 0 = offsets do not
    float at(std::initializer_list<std::int64_t> index) const;
    float at(const std::int64_t* strides, std::initializer_list<std::int64_t> index) const;
    std::int64_t index_at(std::initializer_list<std::int64_t> index) const;

   private:
    double number_at(const std::int64_t* strides, std::initializer_list<std::int64_t> index) const;
  };
  // [batch, rows, heads, dim], read once by the strides that a kernel would take.
  struct Rows {
    std::vector<float> values;
    std::int64_t rows = 0, heads = 0, dim = 0;
    const float* at(std::int64_t batch, std::int64_t row, std::int64_t head) const {
      return values.data() + ((batch * rows + row) * heads + head) * dim;
    }
  };
  // A query row of a head: its number and those of its keys in its sequence.
  struct Row {
    std::int64_t batch = 0, head = 0, index = 0;  // in the tensor
    std::int64_t number = -1, rows = 0, first_key = 0, keys = 0, position = 0;
  };
  struct Score {
    float value = 0, slope = 1, tanh = 0;
  };
  struct Partial {
    float maximum, sum = 0;
    std::vector<float> output;
  };

  bool is(Fault fault) const { return fault_ == fault; }
  bool has(std::size_t slot) const { return problem_.has(slot); }
  View view(std::size_t slot) const;
  Rows rows(std::size_t slot, std::size_t strides_of) const;
  Row row_of(std::int64_t batch, std::int64_t head, std::int64_t index) const;
  void find_sequence(Row& row) const;
  std::int64_t key_position(const Row& row, std::int64_t key) const;
  bool sees(const Row& row, std::int64_t key) const;
  bool in_band(const Row& row, std::int64_t key) const;
  bool unmasked(const Row& row, std::int64_t key) const;
  float pair_value(const View& view, const Row& row, std::int64_t key, Fault batch,
                   Fault head) const;
  Score score(const Row& row, std::int64_t key) const;
  float keep(const Row& row, std::int64_t key) const;
  std::vector<float> sinks(const Row& row) const;
  std::int64_t kv_head(std::int64_t head) const;
  const float* key_row(const Row& row, std::int64_t key) const;
  const float* value_row(const Row& row, std::int64_t key) const;
  float exponential(float x) const;

  Partial split(const Row& row, std::int64_t first, std::int64_t last) const;
  void tile(const Row& row, std::int64_t first, std::int64_t last, Partial& partial) const;
  Partial merge(const std::vector<Partial>& parts) const;
  void finish(const Row& row, Partial partial, std::vector<double>& output,
              std::vector<double>& log_sum_exp) const;

  struct Gradients;
  void accumulate(const Row& row, Gradients& gradients) const;

  const Problem& problem_;
  const operations::attention::AttentionProblem& call_;
  std::span<HostTensor> tensors_;
  Fault fault_;
  float scale_, cap_;
  Rows query_, key_, value_, output_, gradient_, delta_gradient_;
  View log_sum_exp_, mask_, bias_, slopes_, sinks_, cu_q_, cu_k_, q_lengths_, kv_lengths_,
      q_segments_, kv_segments_, q_positions_, kv_positions_;
};

}  // namespace tessera::testing
