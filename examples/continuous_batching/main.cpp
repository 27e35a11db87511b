// SPDX-License-Identifier: Apache-2.0
// A server in small: a scheduler over one pool of pages, around a model of one layer with random
// weights. Each step is one call of ragged_page_attention_v3, which writes the new keys and values
// and attends, for prompts and for requests that decode alike. Every request is run alone,
// too, and must get the same tokens: all steps have one shape, and the number of splits is
// pinned, so that a row has the same bits whatever is beside it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <random>
#include <tessera/tessera.hpp>

#include "scheduler.hpp"

namespace ts = tessera;

namespace {

constexpr std::int64_t kHeads = 8, kKvHeads = 2, kDim = 16, kWidth = kHeads * kDim, kWords = 97;
constexpr Limits kLimits{
    .pages = 40, .swap_pages = 12, .page_size = 4, .pages_of_one = 16, .rows = 24, .sequences = 8};
constexpr auto kRows = static_cast<std::int64_t>(kLimits.rows);

std::vector<float> random_floats(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  std::ranges::generate(values, [&] { return normal(random); });
  return values;
}

// embeddings of words and places; rms_norm, attention and its sum with the embeddings; rms_norm,
// and a logit for each word.
struct Model {
  std::vector<float> words = random_floats(kWords * kWidth, 1),
                     places = random_floats(kLimits.pages_of_one * kLimits.page_size * kWidth, 2);
  ts::Tensor qkv, mix, answers;  // [out_features, width]

  explicit Model(const ts::Context& context)
      : qkv(weight(context, kWidth + 2 * kKvHeads * kDim, 3)),
        mix(weight(context, kWidth, 4)),
        answers(weight(context, kWords, 5)) {}

  static ts::Tensor weight(const ts::Context& context, std::int64_t features, std::uint32_t seed) {
    std::vector<float> values = random_floats(features * kWidth, seed);
    for (float& value : values) value *= 0.15F;
    return context.upload(values, {features, kWidth});
  }
};

struct Totals {
  std::size_t steps = 0, rows = 0, generated = 0, pages = 0, most_pages = 0;
  std::size_t shared = 0, swapped_out = 0, dropped = 0;
  double seconds = 0;
};

class Server {
 public:
  explicit Server(const ts::Context& context)
      : context_(context),
        model_(context),
        cache_(pool(kLimits.pages)),
        swap_(pool(kLimits.swap_pages)) {}

  // Requests are in the order of their arrival.
  Totals run(std::vector<Request>& requests) {
    Scheduler scheduler(kLimits);
    Totals totals;
    const auto start = std::chrono::steady_clock::now();
    for (auto next = requests.begin(); next != requests.end() || !scheduler.idle();
         ++totals.steps) {
      for (; next != requests.end() && next->arrival <= totals.steps; ++next) scheduler.add(*next);
      const Step step = scheduler.next();
      copy(step.in, cache_, swap_);
      copy(step.out, swap_, cache_);
      if (!step.parts.empty()) totals.generated += forward(step.parts);
      for (const Part& part : step.parts) totals.rows += part.count;
      totals.pages += scheduler.pages_used();
      totals.most_pages = std::max(totals.most_pages, scheduler.pages_used());
      scheduler.settle(step);
    }
    totals.shared = scheduler.pages_shared();
    totals.swapped_out = scheduler.pages_swapped_out();
    totals.dropped = scheduler.requests_dropped();
    totals.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return totals;
  }

 private:
  ts::Tensor pool(std::int64_t pages) const {
    return context_.empty(
        ts::DType::kF32, {pages, static_cast<std::int64_t>(kLimits.page_size), 2 * kKvHeads, kDim});
  }

  ts::Tensor ints(const std::vector<std::int32_t>& values) const {
    return context_.upload(values, {static_cast<std::int64_t>(values.size())});
  }

  void copy(const Copies& copies, const ts::Tensor& to, const ts::Tensor& from) const {
    if (copies.from.empty()) return;
    ts::copy_pages(context_, ints(copies.from), ints(copies.to), to, from);
  }

  // Returns how many tokens came out of it.
  std::size_t forward(const std::vector<Part>& parts) const {
    // Nobody looks behind the sequences and the pages that there are; rows without a sequence are
    // computed and not used.
    std::vector<std::int32_t> lengths(kLimits.sequences, -1), starts(kLimits.sequences + 1, -1),
        tables(kLimits.sequences * kLimits.pages_of_one, -1);
    std::vector<float> embeddings(kLimits.rows * kWidth);
    std::size_t rows = 0;
    starts[0] = 0;
    for (std::size_t n = 0; n < parts.size(); ++n) {
      const auto& [request, count] = parts[n];
      std::ranges::copy(request->pages,
                        tables.begin() + static_cast<std::ptrdiff_t>(n * kLimits.pages_of_one));
      for (std::size_t place = request->done; place < request->done + count; ++place)
        embed(request->tokens[place], place, &embeddings[rows++ * kWidth]);
      lengths[n] = static_cast<std::int32_t>(request->done + count);
      starts[n + 1] = static_cast<std::int32_t>(rows);
    }
    const auto sequences = static_cast<std::int32_t>(parts.size());
    const auto decoding = static_cast<std::int32_t>(
        std::ranges::find_if(parts, [](const Part& part) { return part.count > 1; }) -
        parts.begin());

    const ts::Tensor input = context_.upload(embeddings, {kRows, kWidth});
    const ts::Tensor qkv = ts::linear(context_, ts::rms_norm(context_, input), model_.qkv)
                               .reshape({kRows, kHeads + 2 * kKvHeads, kDim});
    const ts::Tensor attended = ts::ragged_page_attention_v3(
        context_, qkv.slice(1, 0, kHeads), qkv.slice(1, kHeads, kHeads + kKvHeads),
        qkv.slice(1, kHeads + kKvHeads, kHeads + 2 * kKvHeads), cache_, ints(lengths), ints(tables),
        ints(starts), ints({decoding, decoding, sequences}), {.num_splits = 1});
    const ts::Tensor sum =
        ts::linear(context_, attended.reshape({kRows, kWidth}), model_.mix, {.residual = input});
    const ts::Tensor logits = ts::linear(context_, ts::rms_norm(context_, sum), model_.answers);
    return take_tokens(parts, context_.download<float>(logits));
  }

  void embed(int word, std::size_t place, float* to) const {
    for (std::size_t i = 0; i < kWidth; ++i) {
      to[i] = model_.words[static_cast<std::size_t>(word) * kWidth + i] +
              model_.places[place * kWidth + i];
    }
  }

  // The last row of a request that has no more to read says its next token.
  static std::size_t take_tokens(const std::vector<Part>& parts, const std::vector<float>& logits) {
    std::size_t row = 0, generated = 0;
    for (const auto& [request, count] : parts) {
      row += count;
      request->done += count;
      if (request->done < request->tokens.size()) continue;
      const float* scores = &logits[(row - 1) * kWords];
      request->tokens.push_back(
          static_cast<int>(std::max_element(scores, scores + kWords) - scores));
      ++generated;
    }
    return generated;
  }

  const ts::Context& context_;
  Model model_;
  ts::Tensor cache_, swap_;
};

// Prompts of many lengths, a few of them at the beginning and one every other step; every third
// begins as the first does.
std::vector<Request> make_requests() {
  std::mt19937 random(7);
  std::vector<Request> requests(14);
  for (std::size_t n = 0; n < requests.size(); ++n) {
    Request& request = requests[n];
    request.prompt = n % 3 == 0 ? 18 + random() % 14 : 3 + random() % 29;
    request.wanted = 8 + random() % 24;
    request.arrival = n < 6 ? 0 : 2 * (n - 6);
    if (n > 0 && n % 3 == 0)
      request.tokens.assign(requests[0].tokens.begin(), requests[0].tokens.begin() + 17);
    while (request.tokens.size() < request.prompt)
      request.tokens.push_back(static_cast<int>(random() % kWords));
  }
  return requests;
}

bool run_on(const ts::DeviceInfo& info) {
  const ts::Context context = ts::Context::open(std::to_string(info.index));
  Server server(context);
  // Alone first: what a device compiles for a step, but for copies of pages, is compiled then, and
  // not in the time below.
  std::vector<std::vector<int>> expected;
  for (const Request& request : make_requests()) {
    std::vector<Request> alone{request};
    alone[0].arrival = 0;
    server.run(alone);
    expected.push_back(alone[0].tokens);
  }
  std::vector<Request> requests = make_requests();
  const Totals totals = server.run(requests);
  const auto per_step = [&](std::size_t sum) {
    return static_cast<double>(sum) / static_cast<double>(totals.steps);
  };
  std::printf(
      "%s\n  %.0f tokens per second: %zu in %zu steps of %.1f rows\n"
      "  of %d pages %.1f in use, %zu at most; %zu shared, %zu swapped out; %zu requests dropped\n",
      info.profile.name.c_str(), static_cast<double>(totals.generated) / totals.seconds,
      totals.generated, totals.steps, per_step(totals.rows), kLimits.pages, per_step(totals.pages),
      totals.most_pages, totals.shared, totals.swapped_out, totals.dropped);
  bool right = totals.shared > 0 && totals.swapped_out > 0 && totals.dropped > 0;
  if (!right) std::printf("  something never happened: sharing, swapping or dropping\n");
  for (std::size_t n = 0; n < requests.size(); ++n) {
    if (requests[n].tokens == expected[n]) continue;
    std::printf("  request %zu got other tokens than alone\n", n);
    right = false;
  }
  return right;
}

}  // namespace

int main() {
  try {
    bool right = true;
    for (const ts::DeviceInfo& info : ts::probe_devices().devices) right = run_on(info) && right;
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
