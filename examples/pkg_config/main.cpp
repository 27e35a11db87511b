// SPDX-License-Identifier: Apache-2.0
// Grouped heads and a sliding window in half precision, with the log-sum-exp as a second output.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <tessera/tessera.hpp>
#include <vector>

namespace ts = tessera;

namespace {

int run() {
  const ts::Context context = ts::Context::open();
  const ts::Tensor query =
      context.upload(std::vector<ts::Half>(128 * 8 * 32, ts::Half(0.5)), {1, 128, 8, 32});
  const ts::Tensor key =
      context.upload(std::vector<ts::Half>(128 * 2 * 32, ts::Half(0.25)), {1, 128, 2, 32});
  const ts::Tensor value =
      context.upload(std::vector<ts::Half>(128 * 2 * 16, ts::Half(2.0)), {1, 128, 2, 16});

  // Every query row sees itself and the 31 rows before it.
  const auto [output, log_sum_exp] =
      ts::flash_attention_forward(context, query, key, value, {.sliding_window = {{31, 0}}});
  const float last = static_cast<float>(context.download<ts::Half>(output).back());
  const float lse = context.download<float>(log_sum_exp).back();

  // All scores are 32 * 0.5 * 0.25 / sqrt(32), all values 2, and the last row sees 32 keys.
  const double expected_lse = 4.0 / std::sqrt(32.0) + std::log(32.0);
  std::printf("output %s, last element %g; log-sum-exp %s, last element %g\n",
              output.spec().to_string().c_str(), last, log_sum_exp.spec().to_string().c_str(), lse);
  return std::fabs(last - 2.0) < 1e-2 && std::fabs(lse - expected_lse) < 1e-3 ? 0 : 1;
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
