// SPDX-License-Identifier: Apache-2.0
// Relations between calls that hold whatever the right answer is, on this machine's CPU through
// OpenCL. Bitwise wherever the same work is done on the same numbers; else
// within the bounds of two calls. All calls share a few kernels: float, head_dim 64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "operations/attention_core/oracle/thresholds.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

using Values = std::vector<float>;

constexpr std::int64_t kDim = 64;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::size_t index(std::int64_t n) { return static_cast<std::size_t>(n); }

Values normal(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution;
  Values values(index(count));
  for (float& value : values) value = distribution(generator);
  return values;
}

// [batch, rows, heads, 64] in host memory.
struct Rows {
  std::int64_t batch = 0, rows = 0, heads = 0;
  Values values;

  static Rows random(std::int64_t batch, std::int64_t rows, std::int64_t heads, unsigned seed) {
    return {batch, rows, heads, normal(batch * rows * heads * kDim, seed)};
  }
  float* at(std::int64_t b, std::int64_t row, std::int64_t head) {
    return values.data() + ((b * rows + row) * heads + head) * kDim;
  }
  // Element (b, row, head) of the result is element place(b, row, head) of this.
  template <class Place>
  Rows gather(std::int64_t new_batch, std::int64_t new_rows, std::int64_t new_heads, Place place) {
    Rows result{new_batch, new_rows, new_heads,
                Values(index(new_batch * new_rows * new_heads * kDim))};
    for (std::int64_t b = 0; b < new_batch; ++b) {
      for (std::int64_t i = 0; i < new_rows; ++i) {
        for (std::int64_t h = 0; h < new_heads; ++h) {
          const auto [from_b, from_i, from_h] = place(b, i, h);
          std::copy_n(at(from_b, from_i, from_h), kDim, result.at(b, i, h));
        }
      }
    }
    return result;
  }
  Rows part(std::int64_t first, std::int64_t last) {
    return gather(batch, last - first, heads, [&](auto b, auto i, auto h) {
      return std::array{b, i + first, h};
    });
  }
};

struct Answer {
  Values output, log_sum_exp;
  bool operator==(const Answer&) const = default;
};

class Metamorphic : public ::testing::Test {
 protected:
  void SetUp() override {
    if (select_devices(probe_devices(), "opencl:cpu").empty())
      GTEST_SKIP() << "no CPU through OpenCL on this machine";
    context_.emplace(Context::open({.device = "opencl:cpu", .cache_directory = ""}));
  }

  const Context& context() const { return *context_; }

  // One configuration of a variant, whatever the sizes.
  Executor pinned(const char* variant) const {
    const TensorSpec q = TensorSpec::contiguous(DType::kF32, {1, 70, 1, kDim}),
                     few = TensorSpec::contiguous(DType::kF32, {1, 3, 1, kDim});
    const Operation& operation = find_operation("flash_attention");
    const bool decode = std::string(variant) == "cpu_decode";
    const Problem typical = make_problem(operation, {decode ? few : q, q, q}, {});
    Config config = operation.find_variant(variant)->space(typical, context().device()).front();
    return Executor(context()).with_variant(variant).with_config(config);
  }

  Tensor upload(const Rows& rows) const {
    return context().upload(rows.values, {rows.batch, rows.rows, rows.heads, kDim});
  }
  Tensor integers(std::vector<std::int32_t> values) const {
    const auto count = static_cast<std::int64_t>(values.size());
    return context().upload(values, {count});
  }
  Answer run(const Executor& on, const Rows& q, const Rows& k, const Rows& v,
             const FlashAttentionOptions& options = {}) const {
    return download(flash_attention_forward(on, upload(q), upload(k), upload(v), options));
  }
  Answer download(const FlashAttentionForward& forward) const {
    return {.output = context().download<float>(forward.output),
            .log_sum_exp = context().download<float>(forward.log_sum_exp)};
  }

  // Both within their bounds of the same exact answer; sum_j p |v| comes from a call of its own,
  // and |q| |k| bounds the scores' magnitude.
  void expect_close(const Answer& a, const Answer& b, Rows q, Rows k, Rows v,
                    const FlashAttentionOptions& options = {}, float shift = 0) const {
    for (float& value : v.values) value = std::fabs(value);
    const Answer magnitude = run(Executor(context()), q, k, v, options);
    const auto longest = [](const Values& values) {
      double most = 0;
      for (std::size_t row = 0; row < values.size(); row += kDim) {
        double squares = 0;
        for (std::size_t d = 0; d < kDim; ++d)
          squares += static_cast<double>(values[row + d]) * values[row + d];
        most = std::max(most, std::sqrt(squares));
      }
      return most;
    };
    const double scores =
        (1 + operations::attention::sum_growth(kDim)) * longest(q.values) * longest(k.values) / 8 +
        std::fabs(shift);
    const double growth =
        scores + std::sqrt(static_cast<double>(k.rows)) + operations::attention::kLeastGrowth;
    const double bound = 2 * operations::attention::kRoundings * kUnitF32 * growth;
    ASSERT_EQ(a.output.size(), b.output.size());
    for (std::size_t n = 0; n < a.output.size(); ++n)
      ASSERT_TRUE(std::fabs(a.output[n] - b.output[n]) <= bound * magnitude.output[n])
          << n << ": " << a.output[n] << " and " << b.output[n];
    for (std::size_t n = 0; n < a.log_sum_exp.size(); ++n)
      ASSERT_TRUE(a.log_sum_exp[n] == b.log_sum_exp[n] ||
                  std::fabs(a.log_sum_exp[n] - b.log_sum_exp[n] - shift) <= bound)
          << n << ": " << a.log_sum_exp[n] << " and " << b.log_sum_exp[n];
  }

  Rows q_ = Rows::random(2, 70, 4, 1), k_ = Rows::random(2, 130, 2, 2),
       v_ = Rows::random(2, 130, 2, 3);

 private:
  std::optional<Context> context_;
};

TEST_F(Metamorphic, TheOrderOfKeysDoesNotMatter) {
  std::vector<std::int64_t> order(130);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(4));
  const auto permuted = [&](Rows& rows) {
    return rows.gather(2, 130, 2, [&](auto b, auto i, auto h) {
      return std::array{b, order[index(i)], h};
    });
  };
  std::vector<std::uint8_t> mask(2 * 130), permuted_mask(mask.size());
  Values bias = normal(130, 5), permuted_bias(130);
  for (std::size_t n = 0; n < mask.size(); ++n) mask[n] = n % 3 == 1 ? 0 : 1;
  for (std::size_t n = 0; n < mask.size(); ++n)
    permuted_mask[n] = mask[n / 130 * 130 + index(order[n % 130])];
  for (std::size_t n = 0; n < 130; ++n) permuted_bias[n] = bias[index(order[n])];
  const auto options = [&](const auto& hidden, const Values& added) {
    return FlashAttentionOptions{.attention_mask = context().upload(hidden, {2, 130}),
                                 .bias = context().upload(added, {1, 1, 1, 130})};
  };
  const Executor on = pinned("cpu");
  const auto plain = options(mask, bias);
  expect_close(run(on, q_, k_, v_, plain),
               run(on, q_, permuted(k_), permuted(v_), options(permuted_mask, permuted_bias)), q_,
               k_, v_, plain);
}

TEST_F(Metamorphic, SplitKeysMergeToOnePass) {
  Rows q = q_.part(0, 3);
  const Answer whole = run(pinned("cpu"), q, k_, v_);
  for (int splits = 1; splits <= 8; ++splits)
    expect_close(whole, run(context(), q, k_, v_, {.num_splits = splits}), q, k_, v_);
}

TEST_F(Metamorphic, PartsMergeByTheirLogSumExpAndEmptyPartsAreNothing) {
  const Executor on = pinned("cpu");
  const Answer whole = run(on, q_, k_, v_);
  const std::int64_t cuts[] = {0, 0, 31, 32, 32, 101, 130};
  std::vector<double> output(whole.output.size()), sum(whole.log_sum_exp.size());
  for (std::size_t part = 0; part + 1 < std::size(cuts); ++part) {
    const Answer answer =
        run(on, q_, k_.part(cuts[part], cuts[part + 1]), v_.part(cuts[part], cuts[part + 1]));
    for (std::size_t n = 0; n < output.size(); ++n) {
      const std::size_t row = n / kDim, head = row % 4, i = row / 4 % 70, b = row / 280;
      const std::size_t at = (b * 4 + head) * 70 + i;
      if (cuts[part] == cuts[part + 1]) {
        ASSERT_EQ(answer.output[n], 0);
        ASSERT_EQ(answer.log_sum_exp[at], -kInfinity);
      }
      const double weight = std::exp(static_cast<double>(answer.log_sum_exp[at]) -
                                     static_cast<double>(whole.log_sum_exp[at]));
      output[n] += weight * static_cast<double>(answer.output[n]);
      if (n % kDim == 0) sum[at] += weight;
    }
  }
  Answer merged = whole;
  for (std::size_t n = 0; n < output.size(); ++n) merged.output[n] = static_cast<float>(output[n]);
  for (std::size_t n = 0; n < sum.size(); ++n)
    merged.log_sum_exp[n] += static_cast<float>(std::log(sum[n]));
  expect_close(whole, merged, q_, k_, v_);
}

TEST_F(Metamorphic, ACausalPrefixIsTheShorterCallBitForBit) {
  const Executor on = pinned("cpu");
  Rows k = k_.part(0, 70), v = v_.part(0, 70);
  const FlashAttentionOptions causal{.causal = true};
  Answer whole = run(on, q_, k, v, causal);
  Rows output{2, 70, 4, whole.output};
  for (const std::int64_t t : {1, 15, 16, 17, 64, 69}) {
    const Answer prefix = run(on, q_.part(0, t), k.part(0, t), v.part(0, t), causal);
    EXPECT_EQ(prefix.output, output.part(0, t).values) << t;
  }
}

TEST_F(Metamorphic, ADecodingStepIsARowOfThePrefill) {
  Rows k = k_.part(0, 70), v = v_.part(0, 70);
  const FlashAttentionOptions causal{.causal = true};
  const Answer whole = run(pinned("cpu"), q_, k, v, causal);
  Rows output{2, 70, 4, whole.output};
  for (const std::int64_t t : {0, 1, 33, 69}) {
    Rows q = q_.part(t, t + 1);
    Answer step = run(pinned("cpu_decode"), q, k.part(0, t + 1), v.part(0, t + 1));
    step.log_sum_exp.clear();
    expect_close(step, {.output = output.part(t, t + 1).values, .log_sum_exp = {}}, q,
                 k.part(0, t + 1), v.part(0, t + 1));
  }
}

TEST_F(Metamorphic, PackedSequencesAreThePaddedOnes) {
  const Executor on = pinned("cpu");
  const std::vector<std::int32_t> rows{70, 41}, keys{97, 130};
  const FlashAttentionOptions padded{.causal = true,
                                     .causal_alignment = CausalAlignment::kBottomRight,
                                     .q_lengths = integers(rows),
                                     .kv_lengths = integers(keys)};
  const auto pack = [](Rows& from, const std::vector<std::int32_t>& lengths) {
    return from.gather(1, lengths[0] + lengths[1], from.heads, [&](auto, auto i, auto h) {
      return i < lengths[0] ? std::array<std::int64_t, 3>{0, i, h}
                            : std::array<std::int64_t, 3>{1, i - lengths[0], h};
    });
  };
  const Tensor ends_q = integers({0, 70, 111}), ends_k = integers({0, 97, 227});
  const auto flat = [&](const Rows& from) {
    return context().upload(from.values, {from.rows, from.heads, kDim});
  };
  const Tensor packed =
      flash_attention(on, flat(pack(q_, rows)), flat(pack(k_, keys)), flat(pack(v_, keys)),
                      {.causal = true,
                       .causal_alignment = CausalAlignment::kBottomRight,
                       .cum_seqlens_q = ends_q,
                       .cum_seqlens_k = ends_k});
  Answer whole = run(on, q_, k_, v_, padded);
  Rows output{2, 70, 4, whole.output};
  // Rows of the padding are 0 and have no packed counterpart.
  for (std::int64_t i = 41; i < 70; ++i) {
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t d = 0; d < kDim; ++d) ASSERT_EQ(output.at(1, i, h)[d], 0);
    }
  }
  Rows back{1, 111, 4, context().download<float>(packed)};
  const Answer unpacked{.output = back.gather(2, 70, 4,
                                              [](auto b, auto i, auto h) {
                                                const std::int64_t row =
                                                    b == 0 ? i : 70 + std::min<std::int64_t>(i, 40);
                                                return std::array<std::int64_t, 3>{0, row, h};
                                              })
                                      .values,
                        .log_sum_exp = {}};
  const Answer clipped{.output = output
                                     .gather(2, 70, 4,
                                             [](auto b, auto i, auto h) {
                                               const std::int64_t row =
                                                   b == 0 ? i : std::min<std::int64_t>(i, 40);
                                               return std::array<std::int64_t, 3>{b, row, h};
                                             })
                                     .values,
                       .log_sum_exp = {}};
  expect_close(unpacked, clipped, q_, k_, v_,
               {.causal = true,
                .causal_alignment = CausalAlignment::kBottomRight,
                .kv_lengths = integers(keys)});
}

TEST_F(Metamorphic, HiddenKeysChangeNoBit) {
  // 130 keys of which 93 count: as with fewer keys beside them, and with NaN and infinity there.
  const std::vector<std::int32_t> lengths{93, 93};
  const auto mask = [&](std::int64_t keys) {
    std::vector<std::uint8_t> values(index(keys));
    std::fill_n(values.begin(), 93, std::uint8_t{1});
    return FlashAttentionOptions{.attention_mask = context().upload(values, {1, 1, 1, keys})};
  };
  for (const char* variant : {"cpu", "cpu_decode"}) {
    const Executor on = pinned(variant);
    Rows q = std::string(variant) == "cpu" ? q_ : q_.part(0, 3);
    const FlashAttentionOptions by_length{.kv_lengths = integers(lengths)};
    const Answer by_lengths = run(on, q, k_.part(0, 93), v_.part(0, 93), by_length);
    EXPECT_EQ(run(on, q, k_, v_, by_length), by_lengths) << variant;
    // 96 keys are whole blocks of every configuration, so the same sums are formed.
    const Answer masked = run(on, q, k_.part(0, 96), v_.part(0, 96), mask(96));
    EXPECT_EQ(run(on, q, k_, v_, mask(130)), masked) << variant;
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      Rows k = k_, v = v_;
      for (std::int64_t b = 0; b < 2; ++b) {
        for (std::int64_t j = 93; j < 130; ++j) {
          std::fill_n(k.at(b, j, 0), 2 * kDim, bad);
          std::fill_n(v.at(b, j, 0), 2 * kDim, bad);
        }
      }
      EXPECT_EQ(run(on, q, k, v, by_length), by_lengths) << variant << " " << bad;
      EXPECT_EQ(run(on, q, k, v, mask(130)), masked) << variant << " " << bad;
    }
  }
}

TEST_F(Metamorphic, NanStaysInTheRowsThatSeeIt) {
  const FlashAttentionOptions causal{.causal = true};
  for (const std::string variant : {"cpu", "cpu_decode", "tile", "decode"}) {
    const Executor on = pinned(variant.c_str());
    const std::int64_t rows = variant.ends_with("decode") ? 60 : 70, bad = 40;
    Rows q = q_.part(0, rows), k = k_.part(0, rows), v = v_.part(0, rows);
    const Answer clean = run(on, q, k, v, causal);
    k.at(1, bad, 0)[7] = kNan;
    v.at(1, bad, 0)[3] = kNan;
    const Answer dirty = run(on, q, k, v, causal);
    for (std::size_t n = 0; n < clean.output.size(); ++n) {
      const std::size_t row = n / kDim, head = row % 4, b = row / 4 / index(rows);
      if (b == 1 && head < 2 && row / 4 % index(rows) >= index(bad)) {
        ASSERT_TRUE(std::isnan(dirty.output[n])) << variant << " " << n;
      } else {
        ASSERT_EQ(dirty.output[n], clean.output[n]) << variant << " " << n;
      }
    }
  }
}

TEST_F(Metamorphic, TheOutputIsLinearInTheValues) {
  const Executor on = pinned("cpu");
  const Rows other = Rows::random(2, 130, 2, 6);
  const Answer a = run(on, q_, k_, v_), b = run(on, q_, k_, other);
  Rows doubled = v_, mixed = v_;
  for (std::size_t n = 0; n < v_.values.size(); ++n) {
    doubled.values[n] = 4 * v_.values[n];
    mixed.values[n] = 0.75F * v_.values[n] - 1.5F * other.values[n];
  }
  Answer expected = a;
  for (float& value : expected.output) value *= 4;
  EXPECT_EQ(run(on, q_, k_, doubled), expected);  // a power of two changes no rounding
  for (std::size_t n = 0; n < a.output.size(); ++n)
    expected.output[n] = 0.75F * a.output[n] - 1.5F * b.output[n];
  Rows largest = v_;
  for (std::size_t n = 0; n < v_.values.size(); ++n)
    largest.values[n] = 0.75F * std::fabs(v_.values[n]) + 1.5F * std::fabs(other.values[n]);
  expect_close(run(on, q_, k_, mixed), expected, q_, k_, largest);
}

TEST_F(Metamorphic, AConstantBiasShiftsOnlyTheLogSumExp) {
  const Executor on = pinned("cpu");
  const auto biased = [&](float by) {
    return run(on, q_, k_, v_, {.bias = context().upload(Values(130, by), {1, 1, 1, 130})});
  };
  const Answer plain = biased(0);
  expect_close(biased(12.5F), plain, q_, k_, v_, {}, 12.5F);
  expect_close(biased(-40), plain, q_, k_, v_, {}, -40);
}

TEST_F(Metamorphic, BatchesAndHeadsAreIndependentBitForBit) {
  for (const char* variant : {"cpu", "cpu_decode"}) {
    const Executor on = pinned(variant);
    Rows q = std::string(variant) == "cpu" ? q_ : q_.part(0, 3);
    const FlashAttentionOptions options{.causal = true};
    const Answer whole = run(on, q, k_, v_, options);
    Rows output{2, q.rows, 4, whole.output};
    // Batches and key/value heads exchanged, the heads of a group with them.
    const auto mirrored = [](Rows& rows) {
      return rows.gather(rows.batch, rows.rows, rows.heads, [&](auto b, auto i, auto h) {
        return std::array{1 - b, i, rows.heads - 1 - h};
      });
    };
    Rows answer{2, q.rows, 4, run(on, mirrored(q), mirrored(k_), mirrored(v_), options).output};
    EXPECT_EQ(mirrored(answer).values, whole.output) << variant;
    // One batch and one key/value head at a time.
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t g = 0; g < 2; ++g) {
        const auto only = [&](Rows& rows, std::int64_t heads) {
          return rows.gather(1, rows.rows, heads, [&](auto, auto i, auto h) {
            return std::array<std::int64_t, 3>{b, i, g * heads + h};
          });
        };
        EXPECT_EQ(run(on, only(q, 2), only(k_, 1), only(v_, 1), options).output,
                  only(output, 2).values)
            << variant << " " << b << " " << g;
      }
    }
  }
}

TEST_F(Metamorphic, APinnedNumberOfSplitsDoesNotDependOnTheBatch) {
  // As an application calls: the library chooses the kernel.
  for (const std::int64_t rows : {1, 3, 70}) {
    for (const int splits : {1, 4}) {
      Rows q = q_.part(0, rows);
      const FlashAttentionOptions options{.num_splits = splits};
      if (rows == 70 && splits > 1) continue;  // the kernel for many rows never splits
      Rows output{2, rows, 4, run(context(), q, k_, v_, options).output};
      const auto repeated = [](Rows& from, std::int64_t batch) {
        return from.gather(batch, from.rows, from.heads, [](auto b, auto i, auto h) {
          return std::array{b % 2, i, h};
        });
      };
      for (const std::int64_t batch : {1, 5}) {
        EXPECT_EQ(
            run(context(), repeated(q, batch), repeated(k_, batch), repeated(v_, batch), options)
                .output,
            repeated(output, batch).values)
            << rows << " rows, " << splits << " splits, batch " << batch;
      }
    }
  }
}

TEST_F(Metamorphic, GroupedHeadsAreRepeatedKeysAndValues) {
  const Executor on = pinned("cpu");
  const auto repeated = [](Rows& rows) {
    return rows.gather(2, rows.rows, 4, [](auto b, auto i, auto h) {
      return std::array{b, i, h / 2};
    });
  };
  EXPECT_EQ(run(on, q_, k_, v_), run(on, q_, repeated(k_), repeated(v_)));
}

TEST_F(Metamorphic, AWindowOverEverythingIsNone) {
  const Executor on = pinned("cpu");
  const std::array<std::int64_t, 2> window{130, 130};
  EXPECT_EQ(run(on, q_, k_, v_, {.sliding_window = window}), run(on, q_, k_, v_));
  EXPECT_EQ(run(on, q_, k_, v_, {.causal = true, .sliding_window = window}),
            run(on, q_, k_, v_, {.causal = true}));
}

TEST_F(Metamorphic, AHighCapIsNone) {
  const Executor on = pinned("cpu");
  expect_close(run(on, q_, k_, v_, {.logits_soft_cap = 1e5F}), run(on, q_, k_, v_), q_, k_, v_);
}

// Far from 0 the roundings of two scores differ by far more than 1, and a weight is still at
// most 1.
TEST_F(Metamorphic, FarScoresGiveNoWeightAboveOne) {
  Rows q = Rows::random(1, 70, 4, 1);
  const Rows k = Rows::random(1, 3, 4, 2);
  for (float& value : q.values) value *= 16;
  Rows gradient{1, 70, 4, Values(q.values.size())};  // dv[key, row] is the weight of both
  for (std::int64_t row = 0; row < kDim; ++row)
    for (std::int64_t head = 0; head < 4; ++head) gradient.at(0, row, head)[row] = 1;
  Values bias(index(4 * 70 * 3));
  for (std::size_t n = 0; n < bias.size(); ++n) bias[n] = -1e8F - 1000 * static_cast<float>(n % 3);
  const FlashAttentionOptions options{.bias = context().upload(bias, {1, 4, 70, 3})};
  const FlashAttentionForward forward =
      flash_attention_forward(context(), upload(q), upload(k), upload(k), options);
  const Values dv =
      context().download<float>(flash_attention_backward(context(), upload(q), upload(k), upload(k),
                                                         forward, upload(gradient), options)
                                    .value);
  for (std::size_t n = 0; n < dv.size(); ++n) {
    ASSERT_GE(dv[n], 0) << n;
    ASSERT_LE(dv[n], 1) << n;
  }
  EXPECT_GT(*std::max_element(dv.begin(), dv.end()), 0.5F);
}

TEST_F(Metamorphic, APermutedLayoutChangesNoBit) {
  const Executor on = pinned("cpu");
  const auto by_heads = [&](Rows& rows) {
    Values values;
    for (std::int64_t b = 0; b < rows.batch; ++b) {
      for (std::int64_t h = 0; h < rows.heads; ++h) {
        for (std::int64_t i = 0; i < rows.rows; ++i)
          values.insert(values.end(), rows.at(b, i, h), rows.at(b, i, h) + kDim);
      }
    }
    return context()
        .upload(values, {rows.batch, rows.heads, rows.rows, kDim})
        .permute({0, 2, 1, 3});
  };
  EXPECT_EQ(download(flash_attention_forward(on, by_heads(q_), by_heads(k_), by_heads(v_))),
            run(on, q_, k_, v_));
}

}  // namespace
}  // namespace tessera
