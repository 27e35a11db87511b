// SPDX-License-Identifier: Apache-2.0
// Causal flash attention on the best device, compared with the definition on a few rows.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <tessera/tessera.hpp>
#include <vector>

namespace ts = tessera;

namespace {

constexpr std::int64_t kBatch = 1, kLength = 256, kHeads = 4, kDim = 64;

std::vector<float> random_values(std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(kBatch * kLength * kHeads * kDim));
  for (float& value : values) value = normal(engine);
  return values;
}

// Element 0 of [batch 0, row, head, :].
std::size_t at(std::int64_t row, std::int64_t head) {
  return static_cast<std::size_t>((row * kHeads + head) * kDim);
}

// Row `row` of one head as the formula says it: softmax over the keys up to `row`, then a weighted
// sum of the values.
std::vector<double> expected_row(const std::vector<float>& q, const std::vector<float>& k,
                                 const std::vector<float>& v, std::int64_t row, std::int64_t head) {
  std::vector<double> output(kDim, 0.0);
  double total = 0;
  for (std::int64_t j = 0; j <= row; ++j) {
    double score = 0;
    for (std::size_t d = 0; d < kDim; ++d)
      score += double{q[at(row, head) + d]} * k[at(j, head) + d];
    const double weight = std::exp(score / std::sqrt(double{kDim}));
    total += weight;
    for (std::size_t d = 0; d < kDim; ++d) output[d] += weight * v[at(j, head) + d];
  }
  for (double& value : output) value /= total;
  return output;
}

int run() {
  const ts::Context context =
      ts::Context::open();  // TESSERA_DEVICE=vulkan, for example, chooses another one
  std::printf("%s\n", ts::summary(context.device()).c_str());

  const std::vector<float> q = random_values(1), k = random_values(2), v = random_values(3);
  const ts::Shape shape{kBatch, kLength, kHeads, kDim};
  const ts::Tensor output =
      ts::flash_attention(context, context.upload(q, shape), context.upload(k, shape),
                          context.upload(v, shape), {.causal = true});
  const std::vector<float> result = context.download<float>(output);
  std::printf("%s\n", context.last_execution().name.c_str());

  double worst = 0;
  for (const std::int64_t row : {std::int64_t{0}, std::int64_t{1}, kLength / 2, kLength - 1}) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const std::vector<double> expected = expected_row(q, k, v, row, head);
      for (std::size_t d = 0; d < kDim; ++d) {
        worst = std::fmax(worst, std::fabs(result[at(row, head) + d] - expected[d]));
      }
    }
  }
  std::printf("largest error: %.2e\n", worst);
  return worst < 1e-5 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
