// SPDX-License-Identifier: Apache-2.0
// NaN and infinities in made-up calls: where no visible pair needs an element, and, with
// "some_nan", where some do.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "operations/attention_core/cases/workload.hpp"
#include "operations/attention_core/oracle/reference.hpp"

namespace tessera::operations::attention {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// One of them for each element, none twice in a row.
double wild(std::size_t n) {
  constexpr std::array kWild{std::numeric_limits<double>::quiet_NaN(), kInf, -kInf};
  return kWild[(n + n / 3) % kWild.size()];
}
// What may be in memory where nobody looks: a number, too.
double leftover(std::size_t n) { return n % 5 == 4 ? 12345 : wild(n); }

class Spoiler {
 public:
  Spoiler(const Problem& problem, const Case& shape, std::span<HostTensor> tensors)
      : problem_(problem),
        call_(problem.as<AttentionProblem>()),
        some_(shape.data.starts_with("some_nan")),
        infinite_keys_(shape.data == "some_nan, infinite keys"),
        seed_(static_cast<std::int64_t>(shape.seed % 1009)),
        tensors_(tensors),
        pairs_(problem, tensors) {
    rows_.resize(static_cast<std::size_t>(call_.batch * call_.heads * call_.q_len));
    keys_.resize(static_cast<std::size_t>(call_.batch * call_.kv_heads * call_.kv_len));
    each_visible([&](auto b, auto h, auto i, auto j) {
      rows_[row_index(b, h, i)] = true;
      keys_[key_index(b, h / call_.group(), j)] = true;
    });
  }

  void inputs() {
    const AttentionSlots& slots = call_.slots;
    spoil_rows(slots.query, call_.q_len, call_.heads, rows_, 1);
    spoil_rows(slots.key, call_.kv_len, call_.kv_heads, keys_, 1);
    spoil_rows(slots.value, call_.kv_len, call_.kv_heads, keys_, 3);
    spoil_bias();
  }
  // What the forward pass left of rows that see nothing counts for no gradient, not even of sinks.
  void forward_results() {
    const AttentionSlots& slots = call_.slots;
    spoil_rows(slots.output_gradient, call_.q_len, call_.heads, rows_, 2);
    spoil_rows(slots.output, call_.q_len, call_.heads, rows_, 0);
    std::vector<double> values = tensors_[slots.log_sum_exp].read();
    for (std::size_t n = 0; n < values.size(); ++n)
      if (!rows_[n]) values[n] = leftover(n);
    tensors_[slots.log_sum_exp].write(values);
  }

 private:
  std::size_t row_index(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return static_cast<std::size_t>((b * call_.heads + h) * call_.q_len + i);
  }
  std::size_t key_index(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return static_cast<std::size_t>((b * call_.kv_heads + h) * call_.kv_len + j);
  }
  template <class Visit>
  void each_visible(Visit visit) const {
    for (std::int64_t b = 0; b < call_.batch; ++b)
      for (std::int64_t h = 0; h < call_.heads; ++h)
        for (std::int64_t i = 0; i < call_.q_len; ++i)
          for (std::int64_t j = 0; j < call_.kv_len; ++j)
            if (pairs_.sees(b, h, i, j)) visit(b, h, i, j);
  }

  // Of [batch, length, heads, dim]: all rows that nobody needs, and `some` elements of the others
  // in one head of two.
  void spoil_rows(std::size_t slot, std::int64_t length, std::int64_t heads,
                  const std::vector<bool>& seen, std::int64_t some) {
    std::vector<double> values = tensors_[slot].read();
    const std::int64_t dim = problem_.spec(slot).shape.back();
    for (std::size_t n = 0; n < values.size(); ++n) {
      const auto line = static_cast<std::int64_t>(n) / dim;
      const std::int64_t h = line % heads, i = line / heads % length, b = line / heads / length;
      if (!seen[static_cast<std::size_t>((b * heads + h) * length + i)]) values[n] = leftover(n);
    }
    // Those of later rows first: under a causal mask fewer rows see them.
    for (std::int64_t head = 0; some_ && length > 0 && head < call_.batch * heads; ++head) {
      if ((head + seed_ + static_cast<std::int64_t>(slot)) % 2 != 0) continue;
      for (std::int64_t n = 0; n < some; ++n) {
        const std::int64_t row = (length - 1 - (n * 7 + seed_) % (length / 2 + 1));
        const std::int64_t at = (head / heads * length + row) * heads + head % heads;
        const std::int64_t column = (seed_ + n * 5) % dim;
        values[static_cast<std::size_t>(at * dim + column)] =
            slot == call_.slots.key && infinite_keys_   ? kInf
            : slot == call_.slots.value && is_forward() ? wild(static_cast<std::size_t>(n))
                                                        : std::nan("");
      }
    }
    tensors_[slot].write(values);
  }
  bool is_forward() const { return call_.slots.output_gradient == kNoOperand; }

  void spoil_bias() {
    const std::size_t slot = call_.slots.bias;
    if (!problem_.has(slot)) return;
    const Shape shape = with_pair_axes(problem_.spec(slot)).shape;
    const auto index = [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
      const auto at = [&](std::size_t axis, std::int64_t n) { return shape[axis] > 1 ? n : 0; };
      const std::int64_t head = h / (call_.heads / std::max<std::int64_t>(shape[1], 1));
      return static_cast<std::size_t>(
          ((at(0, b) * shape[1] + at(1, head)) * shape[2] + at(2, i)) * shape[3] + at(3, j));
    };
    std::vector<double> values = tensors_[slot].read();
    std::vector<bool> seen(values.size());
    each_visible([&](auto b, auto h, auto i, auto j) { seen[index(b, h, i, j)] = true; });
    for (std::size_t n = 0; n < values.size(); ++n)
      if (!seen[n] && values[n] != -kInf) values[n] = leftover(n);  // -infinity is what hides
    tensors_[slot].write(values);
  }

  const Problem& problem_;
  const AttentionProblem& call_;
  bool some_, infinite_keys_;
  std::int64_t seed_;
  std::span<HostTensor> tensors_;
  AttentionPairs pairs_;
  std::vector<bool> rows_, keys_;  // that some visible pair needs, by batch, head and number
};

}  // namespace

void spoil_inputs(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  Spoiler(problem, shape, tensors).inputs();
}
void spoil_forward_results(const Problem& problem, const Case& shape,
                           std::span<HostTensor> tensors) {
  Spoiler(problem, shape, tensors).forward_results();
}

}  // namespace tessera::operations::attention
