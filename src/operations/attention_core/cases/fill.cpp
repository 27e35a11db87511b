// SPDX-License-Identifier: Apache-2.0
// Inputs of made-up calls.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "base/normal_numbers.hpp"
#include "base/system/parallel.hpp"
#include "operations/attention_core/cases/workload.hpp"
#include "operations/attention_core/oracle/reference.hpp"
#include "operations/common/numerics.hpp"

namespace tessera::operations::attention {
namespace {

using Values = std::vector<double>;

// (row, key) pairs up to which the forward pass is computed by its definition.
constexpr std::int64_t kMostPairs = std::int64_t{1} << 22;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Filler {
 public:
  Filler(const Problem& problem, const Case& shape, std::span<HostTensor> tensors)
      : problem_(problem),
        call_(problem.as<AttentionProblem>()),
        shape_(shape),
        data_(shape.data.substr(0, shape.data.find('+'))),
        tensors_(tensors) {}

  void fill() {
    const AttentionSlots& slots = call_.slots;
    const std::array rows{slots.query, slots.key, slots.value, slots.output_gradient};
    parallel_for(rows.size(), [&](std::size_t i) {
      if (problem_.has(rows[i])) fill_rows(rows[i]);
    });
    fill_mask(slots.mask);
    fill_bias(slots.bias);
    each(slots.alibi_slopes, [this](auto&, std::size_t n) {
      return std::exp2(-8.0 * static_cast<double>(n % static_cast<std::size_t>(call_.heads) + 1) /
                       static_cast<double>(call_.heads));
    });
    fill_sinks(slots.sinks);
    fill_sequences(slots.cum_seqlens_q, call_.q_len);
    fill_sequences(slots.cum_seqlens_k, call_.kv_len);
    fill_lengths(slots.q_lengths, call_.q_len);
    fill_lengths(slots.kv_lengths, call_.kv_len);
    fill_segments(slots.q_segments, call_.q_len);
    fill_segments(slots.kv_segments, call_.kv_len);
    fill_positions(slots.q_positions, call_.q_len);
    fill_positions(slots.kv_positions, call_.kv_len);
    const bool spoils =
        shape_.data.starts_with("hidden_nan") || shape_.data.starts_with("some_nan");
    if (spoils) spoil_inputs(problem_, shape_, tensors_);
    if (slots.output_gradient != kNoOperand) {
      if (call_.batch * call_.heads * call_.q_len * call_.kv_len > kMostPairs) {
        estimate_forward();
      } else {
        compute_forward();
      }
      if (spoils) spoil_forward_results(problem_, shape_, tensors_);
    }
  }

 private:
  // The seed depends on the slot, so that operands differ.
  std::mt19937_64 generator(std::size_t slot) const {
    return std::mt19937_64(shape_.seed * 1000003 + slot);
  }

  // Numbers of one slot.
  template <class Make>
  void each(std::size_t slot, Make make) {
    if (!problem_.has(slot)) return;
    std::mt19937_64 random = generator(slot);
    Values values(static_cast<std::size_t>(problem_.spec(slot).elements()));
    for (std::size_t n = 0; n < values.size(); ++n) values[n] = make(random, n);
    tensors_[slot].write(values);
  }

  void fill_rows(std::size_t slot) {
    const AttentionSlots& slots = call_.slots;
    const Shape shape = with_batch(problem_.spec(slot)).shape;
    const std::int64_t rows = shape[1], heads = shape[2], dim = shape[3];
    const std::string& data = data_;
    std::mt19937_64 random = generator(slot);
    const auto elements = static_cast<std::size_t>(problem_.spec(slot).elements());
    const Values drawn = repeated(normal_numbers(elements, random), elements);
    each(slot, [&](auto&, std::size_t n) -> double {
      const double value = drawn[n];
      const auto flat = static_cast<std::int64_t>(n);
      const std::int64_t row = flat / (heads * dim) % rows;
      const bool last = flat % dim + 1 == dim;
      if (slot == slots.query && last && follows_trend()) return 1;
      if (slot == slots.key && last && follows_trend()) return value + trend(row, rows, dim);
      if (data == "sharp" && slot == slots.query) return 16 * value;
      if (data == "constant_value" && slot == slots.value)
        return 0.25 * static_cast<double>(flat % dim % 7) - 0.5;
      if (data == "positive") return positive(flat / dim);
      if (data == "integers") return std::clamp(std::round(value), -2.0, 2.0);
      if (data == "tiny" && slot == slots.value) return value * tiny();
      if (data == "large" && slot == slots.value) return std::tanh(value) * large();
      return value;
    });
  }

  // Data whose scores go with the key. The last feature carries them; sums of many equal terms have
  // data of their own, "positive".
  bool follows_trend() const {
    return data_ == "ascending" || data_ == "descending" || data_ == "below_zero" ||
           data_.starts_with("needle");
  }
  // The features of row n: equal ones, so that sums of their products round the same way at every
  // step, and no short fractions, so that they round at all.
  static double positive(std::int64_t n) { return static_cast<double>(n * 5 % 11 + 9) / 13; }
  // That feature of a key, where that of the queries is 1.
  double trend(std::int64_t row, std::int64_t rows, std::int64_t dim) const {
    constexpr double kFarBelow = -150, kMost = 30000;
    if (data_ == "ascending") return 4 * static_cast<double>(row);
    if (data_ == "descending") return 4 * static_cast<double>(rows - row);
    if (data_ == "below_zero")
      return call_.scale == 0 ? 0 : std::clamp(kFarBelow / call_.scale, -kMost, kMost);
    return row == needle(rows) ? 4 * static_cast<double>(dim) : 0;
  }
  // The key that takes all the weight: the last, the first or any.
  std::int64_t needle(std::int64_t rows) const {
    if (data_ == "needle") return rows - 1;
    if (data_ == "needle_first") return 0;
    return static_cast<std::int64_t>(shape_.seed % static_cast<std::uint64_t>(rows));
  }
  // f16's subnormals are part of the format, those of float and bf16 may be flushed.
  double tiny() const { return problem_.dtype == DType::kF16 ? 0x1p-16 : 0x1p-100; }
  double large() const { return problem_.dtype == DType::kF16 ? 60000 : 1e30; }

  // Rows that see nothing, blocks that nobody sees, blocks that all see, and chance.
  void fill_mask(std::size_t slot) {
    if (!problem_.has(slot)) return;
    const std::int64_t keys = problem_.spec(slot).shape.back();
    each(slot, [&](auto& random, std::size_t n) -> double {
      const auto flat = static_cast<std::int64_t>(n);
      const std::int64_t row = flat / keys, block = flat % keys / 24 + row / 16;
      const bool chance = random() % 3 != 0;
      if (problem_.spec(slot).shape.size() > 2 && row % 13 == 5) return 0;
      return block % 4 == 0 ? 0 : block % 4 == 1 ? 1 : static_cast<double>(chance);
    });
  }

  // "+masking": rows that are the dtype's lowest number, as frameworks mask, or -inf; rows of all
  // kinds of numbers, with the largest or without.
  void fill_bias(std::size_t slot) {
    if (!problem_.has(slot)) return;
    const std::int64_t keys = problem_.spec(slot).shape.back();
    const double largest = largest_number(problem_.spec(slot).dtype);
    each(slot, [&](auto& random, std::size_t n) -> double {
      const double value = std::normal_distribution()(random);
      if (!also("masking")) return value;
      const auto line = static_cast<std::uint64_t>(static_cast<std::int64_t>(n) / keys);
      const std::uint64_t kind = (line + shape_.seed) % 7, chance = random() % 6;
      if (kind == 2 || (kind != 4 && chance == 0)) return -largest;
      if (kind == 4 || chance == 1) return -kInfinity;
      return kind == 6 && chance == 2 ? largest : value;
    });
  }

  // "+masking": all sinks of every other head are the dtype's lowest number, and every other one of
  // the rest.
  void fill_sinks(std::size_t slot) {
    if (!problem_.has(slot)) return;
    const auto per_head = static_cast<std::size_t>(problem_.spec(slot).shape.back());
    each(slot, [&](auto& random, std::size_t n) -> double {
      const double value = 2 * std::normal_distribution()(random);
      const bool lowest = also("masking") && (n / per_head % 2 == 0 || n % 2 == 0);
      return lowest ? -largest_number(problem_.spec(slot).dtype) : value;
    });
  }

  // Packed: ascending offsets to the end, the second sequence empty. Padded: lengths of two thirds,
  // of all and of more than all rows. "+unordered": any offsets.
  void fill_sequences(std::size_t slot, std::int64_t length) {
    each(slot, [&](auto& random, std::size_t n) -> double {
      const auto at = static_cast<std::int64_t>(n);
      if (also("unordered")) return any_offset(random, length);
      if (!call_.packed) return static_cast<double>(at * (at + 1) / 2 * (length * 2 / 3));
      if (at == 0) return 0;
      // One sequence alone has all the rows.
      const std::int64_t parts = std::max<std::int64_t>(call_.sequences - 1, 1);
      return static_cast<double>(length * std::max<std::int64_t>(at - 1, 1) / parts);
    });
  }

  // Inside the tensor, outside, and as far as 32 bits go.
  static double any_offset(std::mt19937_64& random, std::int64_t length) {
    const auto offset = static_cast<double>(random() % static_cast<std::uint64_t>(length + 1));
    switch (random() % 16) {
      case 0:
        return -1 - offset;
      case 1:
        return static_cast<double>(length) + offset;
      case 2:
        return random() % 2 == 0 ? std::numeric_limits<std::int32_t>::min() : offset;
      case 3:
        return random() % 2 == 0 ? std::numeric_limits<std::int32_t>::max() : offset;
      default:
        return offset;
    }
  }

  // The third batch has none.
  void fill_lengths(std::size_t slot, std::int64_t length) {
    each(slot, [&](auto& random, std::size_t n) -> double {
      return n == 0   ? static_cast<double>(length - length / 4)
             : n == 2 ? 0
                      : static_cast<double>(random() % static_cast<std::uint64_t>(length + 1));
    });
  }

  // Three documents and padding.
  void fill_segments(std::size_t slot, std::int64_t length) {
    each(slot, [&](auto&, std::size_t n) -> double {
      const std::int64_t part = static_cast<std::int64_t>(n) % length * 7 / length;
      return part == 6 ? -1 : static_cast<double>(part / 2);
    });
  }

  // Each number twice, the later half of the rows first. "+far": near 0, near either end of 32 bits
  // and near half way there.
  void fill_positions(std::size_t slot, std::int64_t length) {
    constexpr double kPlaces[] = {std::numeric_limits<std::int32_t>::min(), -0x1p30, 0, 0x1p30,
                                  std::numeric_limits<std::int32_t>::max() - 15.0};
    each(slot, [&](auto& random, std::size_t n) -> double {
      if (also("far")) return kPlaces[random() % 5] + static_cast<double>(random() % 16);
      const std::int64_t row = static_cast<std::int64_t>(n) % length;
      return static_cast<double>((row + length / 2) % length / 2);
    });
  }

  // Output and log_sum_exp as the forward pass makes them.
  void compute_forward() {
    const AttentionPairs pairs(problem_, tensors_);
    const AttentionSlots& slots = call_.slots;
    Values output(static_cast<std::size_t>(problem_.spec(slots.output).elements()));
    Values lse(static_cast<std::size_t>(call_.batch * call_.heads * call_.q_len));
    parallel_for(lse.size(), [&](std::size_t n) {
      const auto at = static_cast<std::int64_t>(n);
      const std::int64_t i = at % call_.q_len, head = at / call_.q_len % call_.heads,
                         batch = at / call_.q_len / call_.heads;
      const AttentionRow row = attention_row(pairs, batch, head, i);
      const std::int64_t start = ((batch * call_.q_len + i) * call_.heads + head) * call_.value_dim;
      Eigen::Map<Eigen::VectorXd>(output.data() + start, call_.value_dim) = row.output;
      lse[n] = row.log_sum_exp;
    });
    tensors_[slots.output].write(output);
    tensors_[slots.log_sum_exp].write(lse);
  }

  // For shapes where that takes too long, such as those of benchmarks: the gradients are functions
  // of any output and any log_sum_exp, and of normal operands scores are normal with variance
  // scale^2 |q|^2.
  void estimate_forward() {
    const AttentionSlots& slots = call_.slots;
    each(slots.output,
         [](auto& random, std::size_t) { return 0.1 * std::normal_distribution()(random); });
    const std::vector<Matrix> query = read_heads(tensors_[slots.query], problem_.spec(slots.query));
    Values lse;
    for (const Matrix& head : query) {
      for (std::int64_t i = 0; i < call_.q_len; ++i) {
        const auto keys =
            static_cast<double>(std::max<std::int64_t>(call_.last_key(i) - call_.first_key(i), 1));
        lse.push_back(std::log(keys) + call_.scale * call_.scale * head.row(i).squaredNorm() / 2);
      }
    }
    tensors_[slots.log_sum_exp].write(lse);
  }

  const Problem& problem_;
  const AttentionProblem& call_;
  bool also(const std::string& kind) const {
    return shape_.data.find("+" + kind) != std::string::npos;
  }

  const Case& shape_;
  std::string data_;  // of the rows; more kinds may follow, each after a +
  std::span<HostTensor> tensors_;
};

}  // namespace

void fill_attention(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  Filler(problem, shape, tensors).fill();
}

}  // namespace tessera::operations::attention
