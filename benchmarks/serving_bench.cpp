// SPDX-License-Identifier: Apache-2.0
// What an inference server calls: queries over keys in pages, packed sequences, caches of codes,
// and beside them the same over keys that lie one after the other.
//
//   build/tessera_benchmarks --benchmark_filter=serving
//
// TESSERA_DEVICE names the device; unset = opencl. Calls follow one another without a wait in
// between, so that what a launch costs the host does not count where the device takes longer. TB/s
// are of the keys and values that the sequences have, each counted once. Results are not looked at
// here: tessera_conformance does that.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tessera.hpp"

namespace {

using namespace tessera;
using Clock = std::chrono::steady_clock;

struct Serving {
  std::string name;
  const char* operation = "page_attention";
  std::int64_t sequences = 32, keys = 32768;  // the longest has so many
  std::int64_t heads = 32, kv_heads = 8, page = 16;
  std::int64_t rows = 1;      // of a sequence
  std::int64_t prefills = 0;  // sequences in front, of so many rows and keys:
  std::int64_t prefill_rows = 2048;
  DType stored = DType::kF16;
  bool mixed = false;   // lengths from 1 on
  bool packed = false;  // without pages: [rows, heads, dim] and where sequences begin
};

constexpr std::int64_t kDim = 128;
// Of calls for 0.02 s each. Not as the library likes: to find a number of its own it would begin
// anew, and operands take longer to make than to attend over.
constexpr benchmark::IterationCount kRounds = 15;

std::vector<Serving> table() {
  constexpr const char *kRagged = "ragged_page_attention", *kFused = "ragged_page_attention_v3",
                       *kPlain = "flash_attention";
  return {
      {.name = "contiguous", .operation = kPlain},
      {.name = "pages16"},
      {.name = "pages64", .page = 64},
      {.name = "groups8", .heads = 64},
      {.name = "groups16", .heads = 128},
      {.name = "pages16_i8", .stored = DType::kI8},
      {.name = "pages16_e4m3fn", .stored = DType::kE4M3FN},
      {.name = "pages16_i4", .stored = DType::kI4},
      {.name = "one_sequence", .sequences = 1, .keys = 1024},
      {.name = "mixed_lengths", .sequences = 256, .keys = 8192, .mixed = true},
      {.name = "prefills_alone",
       .operation = kRagged,
       .sequences = 8,
       .keys = 2048,
       .page = 64,
       .rows = 2048},
      {.name = "decodes_alone", .operation = kRagged, .sequences = 120, .keys = 4096, .page = 64},
      {.name = "prefills_and_decodes",
       .operation = kRagged,
       .sequences = 128,
       .keys = 4096,
       .page = 64,
       .prefills = 8},
      {.name = "ragged", .operation = kRagged},
      {.name = "ragged_and_write", .operation = kFused},
      {.name = "ragged_short", .operation = kRagged, .sequences = 64, .keys = 1024},
      {.name = "ragged_short_and_write", .operation = kFused, .sequences = 64, .keys = 1024},
      {.name = "prefill_contiguous",
       .operation = kPlain,
       .sequences = 1,
       .keys = 16384,
       .heads = 16,
       .kv_heads = 16,
       .rows = 16384},
      {.name = "prefill_pages64",
       .operation = kRagged,
       .sequences = 1,
       .keys = 16384,
       .heads = 16,
       .kv_heads = 16,
       .page = 64,
       .rows = 16384},
      {.name = "rows_batch",
       .operation = kPlain,
       .sequences = 16,
       .keys = 1024,
       .heads = 16,
       .kv_heads = 16,
       .rows = 1024},
      {.name = "rows_packed",
       .operation = kPlain,
       .sequences = 16,
       .keys = 1024,
       .heads = 16,
       .kv_heads = 16,
       .rows = 1024,
       .packed = true},
      {.name = "decodes_batch", .operation = kPlain, .sequences = 64, .keys = 2048, .kv_heads = 4},
      {.name = "decodes_packed",
       .operation = kPlain,
       .sequences = 64,
       .keys = 2048,
       .kv_heads = 4,
       .packed = true}};
}

// Finite numbers of any type from bits: of f16 and e4m3fn, with one of the exponent's bits cleared.
// Those behind the first 2^20 bytes repeat them.
Tensor random_bits(const Context& context, DType dtype, const Shape& shape) {
  constexpr std::size_t kOwn = std::size_t{1} << 20;
  std::mt19937 random(7);
  const auto elements = static_cast<std::size_t>(TensorSpec::contiguous(dtype, shape).elements());
  const std::size_t size = elements * bits_of(dtype) / 8;
  const auto bytes = std::make_unique_for_overwrite<std::byte[]>(size);
  for (std::size_t i = 0; i < std::min(size, kOwn); ++i) {
    auto byte = static_cast<std::uint8_t>(random() & 0xffU);
    if (dtype == DType::kF16 && i % 2 == 1) byte &= 0xbfU;
    if (dtype == DType::kE4M3FN) byte &= 0xbfU;
    bytes[i] = std::byte{byte};
  }
  for (std::size_t i = kOwn; i < size; i += kOwn)
    std::copy_n(bytes.get(), std::min(kOwn, size - i), bytes.get() + i);
  return context.upload_bytes({bytes.get(), size}, dtype, shape);
}

struct Made {
  Tensors tensors;
  Options options;
  double keys = 0;  // of all sequences
};

std::vector<int> starts_of(const std::vector<int>& rows) {
  std::vector<int> starts(rows.size() + 1, 0);
  std::partial_sum(rows.begin(), rows.end(), starts.begin() + 1);
  return starts;
}

Made make_plain(const Context& context, const Serving& call) {
  const auto shape = [&](std::int64_t rows, std::int64_t heads) {
    return call.packed ? Shape{call.sequences * rows, heads, kDim}
                       : Shape{call.sequences, rows, heads, kDim};
  };
  const Shape rows = shape(call.rows, call.heads), keys = shape(call.keys, call.kv_heads);
  Made made{.tensors = {{"query", random_bits(context, DType::kF16, rows)},
                        {"key", random_bits(context, DType::kF16, keys)},
                        {"value", random_bits(context, DType::kF16, keys)},
                        {"output", context.empty(DType::kF16, rows)}},
            .options = {},
            .keys = static_cast<double>(call.sequences * call.keys)};
  if (call.rows > 1) made.options["causal"] = true;
  if (!call.packed) return made;
  const auto sequences = static_cast<std::size_t>(call.sequences);
  for (const auto& [name, count] :
       {std::pair{"cum_seqlens_q", call.rows}, std::pair{"cum_seqlens_k", call.keys}}) {
    made.tensors[name] = context.upload(starts_of(std::vector(sequences, static_cast<int>(count))),
                                        {call.sequences + 1});
  }
  return made;
}

// Pages of all sequences, shuffled.
Made make_paged(const Context& context, const Serving& call) {
  std::mt19937 random(7);
  const auto sequences = static_cast<std::size_t>(call.sequences);
  const std::int64_t per_sequence = (call.keys + call.page - 1) / call.page;
  const std::int64_t pages = call.sequences * per_sequence;
  std::vector<int> lengths(sequences, static_cast<int>(call.keys)),
      rows(sequences, static_cast<int>(call.rows));
  for (std::size_t n = 0; n < sequences; ++n) {
    if (call.mixed) lengths[n] = 1 + static_cast<int>(random() % static_cast<unsigned>(call.keys));
    if (static_cast<std::int64_t>(n) < call.prefills)
      lengths[n] = rows[n] = static_cast<int>(call.prefill_rows);
  }
  std::vector<int> order(static_cast<std::size_t>(pages));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const Tensor length_tensor = context.upload(lengths, {call.sequences});
  Made made{.tensors = {{"block_tables", context.upload(order, {call.sequences, per_sequence})}},
            .options = {},
            .keys = std::accumulate(lengths.begin(), lengths.end(), 0.0)};
  const std::string operation = call.operation;
  if (operation == "page_attention") {
    const Shape queries{call.sequences, call.heads, kDim},
        pool{pages, call.kv_heads, call.page, kDim};
    made.tensors["context_lens"] = length_tensor;
    made.tensors["query"] = random_bits(context, DType::kF16, queries);
    made.tensors["output"] = context.empty(DType::kF16, queries);
    for (const char* name : {"key_cache", "value_cache"})
      made.tensors[name] = random_bits(context, call.stored, pool);
    if (call.stored == DType::kF16) return made;
    const std::vector<float> scales(static_cast<std::size_t>(pages * call.kv_heads * call.page),
                                    0.01F);
    for (const char* name : {"key_scale", "value_scale"})
      made.tensors[name] = context.upload(scales, {pages, call.kv_heads, call.page});
    return made;
  }
  const bool writes = operation == "ragged_page_attention_v3";
  const std::vector<int> starts = starts_of(rows);
  const Shape queries{starts.back(), call.heads, kDim}, news{starts.back(), call.kv_heads, kDim};
  made.tensors["query_start_loc"] = context.upload(starts, {call.sequences + 1});
  made.tensors["queries"] = random_bits(context, DType::kF16, queries);
  made.tensors["output"] = context.empty(DType::kF16, queries);
  made.tensors[writes ? "kv_lens" : "context_lens"] = length_tensor;
  made.tensors[writes ? "kv_cache" : "kv_pages"] =
      random_bits(context, DType::kF16, {pages, call.page, 2 * call.kv_heads, kDim});
  const auto count = static_cast<int>(call.sequences);
  if (writes) {
    made.tensors["keys"] = random_bits(context, DType::kF16, news);
    made.tensors["values"] = random_bits(context, DType::kF16, news);
    made.tensors["distribution"] =
        context.upload(std::vector<int>{call.rows == 1 ? count : 0, count, count}, {3});
  } else {
    made.tensors["num_seqs"] = context.upload(std::vector<int>{count}, {1});
  }
  return made;
}

void serving(benchmark::State& state, const Serving& call) try {
  const char* const device = std::getenv("TESSERA_DEVICE");
  const Context context = Context::open(device != nullptr && *device != '\0' ? device : "opencl");
  const bool plain = call.operation == std::string("flash_attention");
  const Made made = plain ? make_plain(context, call) : make_paged(context, call);
  const Executor executor(context);
  const auto run = [&](int calls) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) executor.run(call.operation, made.tensors, made.options);
    context.synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count() / calls;
  };
  run(1);
  const int calls = std::clamp(static_cast<int>(0.02 / run(3)), 1, 200);
  // Clocks rise under load, for seconds where a Vulkan context has them.
  double before = 0, now = run(calls);
  for (int i = 0; i < 200 && std::abs(before / now - 1) > 0.01; ++i) {
    before = now;
    now = 0;
    for (int part = 0; part < 5; ++part) now += run(calls) / 5;
  }
  std::vector<double> times;
  for (auto _ : state) {
    times.push_back(run(calls));
    state.SetIterationTime(times.back());
  }
  std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
  const double median = times[times.size() / 2];
  state.counters["median_ms"] = median * 1e3;
  state.counters["TB_per_s"] = 2 * made.keys * static_cast<double>(call.kv_heads * kDim) *
                               static_cast<double>(bits_of(call.stored)) / 8 / median * 1e-12;
  state.SetLabel(context.last_execution().choice.variant);
} catch (const std::exception& error) {
  state.SkipWithError(error.what());
}

[[maybe_unused]] const bool registered = [] {
  for (const Serving& call : table()) {
    benchmark::RegisterBenchmark(("serving/" + call.name).c_str(), serving, call)
        ->UseManualTime()
        ->Iterations(kRounds)
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
