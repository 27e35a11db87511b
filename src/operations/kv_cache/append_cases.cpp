// SPDX-License-Identifier: Apache-2.0
// Made-up calls of append_to_cache and of its gradient, and what they must give.
#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "operations/common/cases.hpp"
#include "operations/kv_cache/cases.hpp"
#include "operations/kv_cache/reference.hpp"

namespace tessera::operations::kv_cache {
namespace {

struct AppendCase {
  const char* name;
  const char* why;
  std::int64_t tokens, heads, pages, page_size, dim, value_dim = 0;
  std::int64_t sequences = 0;  // 0: by slot_mapping
  const char* data = "normal";
  Shape scale{};  // axes of the scales that have the size of the pool's; empty: all of them
  bool counted = false;
};

Case make(const StorageTypes& types, const AppendCase& from) {
  const DType rows = types, cache = types.of("key_cache");
  Case result{.name = from.name, .why = from.why, .data = from.data};
  result.operands.resize(kValueScale + 1);
  const auto add = [&](std::size_t slot, DType dtype, Shape shape) {
    result.operands[slot] = TensorSpec::contiguous(dtype, std::move(shape));
  };
  Shape scale{from.pages, from.heads, from.page_size};
  if (!from.scale.empty()) scale = from.scale;
  add(kKeys, rows, {from.tokens, from.heads, from.dim});
  add(kKeyCache, cache, {from.pages, from.heads, from.page_size, from.dim});
  if (is_code(cache)) add(kKeyScale, DType::kF32, scale);
  if (from.value_dim > 0) {
    add(kValues, rows, {from.tokens, from.heads, from.value_dim});
    add(kValueCache, cache, {from.pages, from.heads, from.page_size, from.value_dim});
    if (is_code(cache)) add(kValueScale, DType::kF32, scale);
  }
  if (from.sequences == 0) {
    add(kSlotMapping, DType::kI32, {from.tokens});
    return result;
  }
  add(kBlockTables, DType::kI32, {from.sequences, from.pages / from.sequences});
  add(kKvLens, DType::kI32, {from.sequences});
  add(kQueryStartLoc, DType::kI32, {from.sequences + 1});
  if (from.counted) add(kNumSeqs, DType::kI32, {1});
  return result;
}

// Heads outside of pages, and keys beside something else in memory.
Case strided(const StorageTypes& types) {
  Case result = make(types, {.name = "strided",
                             .why = "a pool with heads outside of pages, gaps between rows",
                             .tokens = 11,
                             .heads = 3,
                             .pages = 4,
                             .page_size = 4,
                             .dim = 10,
                             .value_dim = 16});
  result.operands[kKeys] = strided_view(types, {11, 3, 10}, {1, 0}, 3, 5);
  result.operands[kKeyCache] = strided_view(types.of("key_cache"), {4, 3, 4, 10}, {2, 0, 1}, 6, 2);
  return result;
}

// Of the tables of a call with `sequences`; the last sequence is not counted where num_seqs says.
struct Tables {
  std::vector<double> tables, lengths, starts;
};

Tables plain_tables(const AppendProblem& call, std::int64_t counted, std::mt19937_64& random) {
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, std::max(least, most))(random);
  };
  const double garbage[] = {-1, 2147483647.0, -2147483648.0, 1e6, -77};
  const std::int64_t size = call.keys.page_size, room = call.per_sequence * size;
  std::vector<double> pages(static_cast<std::size_t>(call.keys.pages));
  std::iota(pages.begin(), pages.end(), 0.0);
  std::shuffle(pages.begin(), pages.end(), random);
  Tables result;
  std::int64_t start = 0;
  for (std::int64_t sequence = 0; sequence < call.sequences; ++sequence) {
    const bool counts = sequence < counted;
    const std::int64_t left = counted - sequence;
    const std::int64_t length =
        counts ? std::min(room, left == 1 ? call.tokens - start
                                          : pick(0, 2 * (call.tokens - start) / left))
               : 0;
    result.starts.push_back(counts ? static_cast<double>(start) : garbage[sequence % 5]);
    start += length;
    const std::int64_t known = counts ? pick(length, room) : 0;
    result.lengths.push_back(counts ? static_cast<double>(known) : garbage[(sequence + 1) % 5]);
    for (std::int64_t page = 0; page < call.per_sequence; ++page) {
      const bool used = counts && page * size < known;
      result.tables.push_back(
          used ? pages[static_cast<std::size_t>(sequence * call.per_sequence + page)]
               : garbage[static_cast<std::size_t>(sequence + page) % 5]);
    }
  }
  result.starts.push_back(0);
  result.starts[static_cast<std::size_t>(counted)] = static_cast<double>(start);
  return result;
}

// Pages outside and twice, lengths and offsets that can't be.
void spoil(Tables& tables, const AppendProblem& call, std::mt19937_64& random) {
  const double numbers[] = {
      -1, 0, 1, 2, static_cast<double>(call.keys.pages), 1e9, -1e9, 7, 2147483647.0, -2147483648.0};
  const auto spoil_some = [&](std::vector<double>& values) {
    for (double& value : values) {
      if (random() % 4 == 0) value = numbers[random() % 10];
    }
  };
  spoil_some(tables.tables);
  spoil_some(tables.lengths);
  spoil_some(tables.starts);
}

void fill_places(const Problem& problem, const Case& shape, std::span<HostTensor> tensors,
                 std::mt19937_64& random) {
  const auto& call = problem.as<AppendProblem>();
  const bool hostile = shape.data == "hostile";
  if (call.mapped) {
    std::vector<double> slots(static_cast<std::size_t>(call.keys.slots()));
    std::iota(slots.begin(), slots.end(), 0.0);
    std::shuffle(slots.begin(), slots.end(), random);
    slots.resize(static_cast<std::size_t>(call.tokens), -1);
    const double numbers[] = {static_cast<double>(call.keys.slots()), -2, 0, 2147483647.0,
                              -2147483648.0};
    for (std::size_t n = 0; n < slots.size(); ++n) {
      if (shape.data == "normal" && n % 7 == 3) slots[n] = -1;
      if (hostile && n % 3 == 1) slots[n] = numbers[random() % 5];
      if (hostile && n % 3 == 2) slots[n] = slots[random() % (n + 1)];
    }
    tensors[kSlotMapping].write(slots);
    return;
  }
  const std::int64_t counted = problem.has(kNumSeqs) ? call.sequences - 1 : call.sequences;
  Tables tables = plain_tables(call, counted, random);
  if (hostile) spoil(tables, call, random);
  tensors[kBlockTables].write(tables.tables);
  tensors[kKvLens].write(tables.lengths);
  tensors[kQueryStartLoc].write(tables.starts);
  if (problem.has(kNumSeqs))
    tensors[kNumSeqs].write(std::vector<double>{hostile ? 1e6 : static_cast<double>(counted)});
}

void fill(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  std::mt19937_64 random(shape.seed * 1000003 + 17);
  fill_places(problem, shape, tensors, random);
  for (const std::size_t slot : {kKeys, kValues, kKeyCache, kValueCache}) {
    if (!problem.has(slot)) continue;
    fill_normal(tensors[slot], random, is_code(problem.spec(slot).dtype) ? 2 : 1);
  }
  for (const std::size_t slot : {kKeys, kValues}) {
    if (shape.data == "wild" && problem.has(slot)) make_wild(tensors[slot]);
  }
  for (const std::size_t slot : {kKeyScale, kValueScale}) {
    if (problem.has(slot)) fill_scales(tensors[slot], random);
  }
}

// Of keys or of values.
void expect_side(const Problem& problem, std::span<HostTensor> tensors, const Places& places,
                 const std::array<std::size_t, 3>& slots, bool own,
                 std::vector<Expectation>& expected) {
  const auto [rows, cache, scale] = slots;
  const PoolShape pool = pool_of(problem.spec(cache));
  const DType codes = problem.spec(cache).dtype;
  Expectation to{.slot = cache}, scales{.slot = scale};
  std::vector<double> given;
  if (is_code(codes)) given = tensors[scale].read();
  for (std::size_t n = 0; n < places.slots.size(); ++n) {
    if (places.slots[n] == kNowhere) continue;
    const std::int64_t page = places.slots[n] / pool.page_size;
    const std::int64_t slot = places.slots[n] % pool.page_size;
    for (std::int64_t head = 0; head < pool.heads; ++head) {
      const std::int64_t row = (page * pool.heads + head) * pool.page_size + slot;
      const std::vector<double> floats =
          row_of(tensors[rows], {static_cast<std::int64_t>(n), head}).read();
      std::vector<double> values = floats;
      if (is_code(codes)) {
        double with = 0;
        if (own) {
          with = scale_of_peak(peak_of(floats), codes);
          scales.elements.push_back(static_cast<std::size_t>(row));
          scales.values.push_back(with);
          scales.bounds.push_back(0);
        } else {
          with = given[scale_index(problem.spec(scale), page, head, slot)];
        }
        values = scaled(floats, with, codes);
      }
      for (std::int64_t i = 0; i < pool.dim; ++i) {
        const double value = values[static_cast<std::size_t>(i)];
        const double x = floats[static_cast<std::size_t>(i)];
        to.elements.push_back(static_cast<std::size_t>(row * pool.dim + i));
        to.values.push_back(value);
        to.bounds.push_back(is_code(codes) ? code_bound(x, value) : 0);
      }
    }
  }
  if (!to.elements.empty()) expected.push_back(std::move(to));
  if (!scales.elements.empty()) expected.push_back(std::move(scales));
}

std::vector<Expectation> expect(const Problem& problem, std::span<HostTensor> tensors,
                                const Arithmetic& /*the bits do not depend on it*/,
                                double /*max_flops*/) {
  const auto& call = problem.as<AppendProblem>();
  const Places places = places_of(problem, tensors);
  std::vector<Expectation> expected;
  expect_side(problem, tensors, places, {kKeys, kKeyCache, kKeyScale},
              has_own_scales(problem, kKeyScale, call.keys), expected);
  if (problem.has(kValues)) {
    expect_side(problem, tensors, places, {kValues, kValueCache, kValueScale},
                has_own_scales(problem, kValueScale, call.values), expected);
  }
  return expected;
}

std::vector<Case> plain_cases(const StorageTypes& types) {
  const std::vector<AppendCase> table{
      {"mapped", "slots by a list, some tokens skipped, rows that no unit divides", 37, 3, 9, 5, 21,
       13},
      {"aligned", "whole units, pages of 16", 33, 2, 6, 16, 64, 64},
      {"words", "rows of whole words", 19, 5, 8, 3, 36, 12},
      {"hostile", "slots outside of the pool, and several tokens for one slot", 70, 2, 10, 8, 8, 8,
       0, "hostile"},
      {"tables",
       "prefills and decodes by tables, with garbage where nothing is",
       29,
       2,
       20,
       4,
       16,
       16,
       5,
       "normal",
       {},
       true},
      {"tables_all", "every sequence counts", 40, 1, 12, 16, 24, 0, 3},
      {"hostile_tables", "tables of garbage", 31, 2, 24, 4, 16, 16, 6, "hostile", {}, true},
      {"hostile_more", "the same without a number of sequences", 64, 1, 30, 3, 8, 8, 10, "hostile"},
      {"wild", "NaN and infinity are copied", 9, 2, 3, 4, 32, 32, 0, "wild"},
      {"nothing", "no tokens", 0, 2, 3, 4, 16, 16},
      {"long", "more tokens than a work-group", 600, 1, 80, 16, 8, 0, 0, "hostile"},
      {"long_tables",
       "the same by tables of garbage",
       270,
       1,
       140,
       3,
       8,
       8,
       7,
       "hostile",
       {},
       true},
      {"few_at_most", "as many tokens and sequences as one work-group takes", 256, 1, 256, 3, 8, 0,
       256, "hostile"},
      {"many_sequences", "more sequences than that of few tokens", 41, 1, 257, 2, 8, 0, 257},
  };
  std::vector<Case> cases;
  for (const AppendCase& from : table) cases.push_back(make(types, from));
  cases.push_back(strided(types));
  return cases;
}

std::vector<Case> codes_cases(const StorageTypes& types) {
  const std::vector<AppendCase> table{
      {"own", "each row makes its scale", 37, 3, 9, 5, 22, 14},
      {"own_aligned", "whole words, more tokens for one slot", 70, 2, 6, 16, 64, 64, 0, "hostile"},
      {"heads", "a scale for each head", 29, 3, 20, 4, 40, 16, 5, "normal", {1, 3, 1}, true},
      {"pages",
       "a scale for each page, tables of garbage",
       31,
       2,
       24,
       4,
       18,
       16,
       6,
       "hostile",
       {24, 1, 1}},
      {"tensor", "one scale", 20, 2, 4, 8, 128, 0, 0, "normal", {1, 1, 1}},
      {"wild", "NaN is no largest magnitude, rows of zeros have scale 1", 9, 2, 3, 4, 34, 32, 0,
       "wild"},
      {"wild_aligned", "the same by words: NaN is integer 0", 9, 2, 3, 4, 64, 64, 0, "wild"},
  };
  std::vector<Case> cases;
  for (const AppendCase& from : table) cases.push_back(make(types, from));
  cases.push_back(strided(types));
  return cases;
}

std::vector<Case> append_benchmarks(const StorageTypes& types) {
  return {
      make(types,
           {"t8192_h8_d128", "a chunk of prefills, pages of 16", 8192, 8, 1024, 16, 128, 128}),
      make(types, {"t256_h8_d128", "a decode of 256 sequences", 256, 8, 1024, 16, 128, 128, 256})};
}

// ---- append_to_cache_backward -------------------------------------------------------------------

// The operands are gradients of those of the call.
std::vector<Case> gradients_of(std::vector<Case> cases) {
  for (Case& call : cases) {
    if (!call.operands[kSlotMapping]) call.options["tokens"] = call.operands[kKeys]->shape[0];
    call.operands.resize(kValueCache + 1);
  }
  return cases;
}

StorageTypes types_of_call(const StorageTypes& types) {
  return *std::ranges::find(append_types(), types.name(), &StorageTypes::name);
}

void fill_gradients(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  std::mt19937_64 random(shape.seed * 1000003 + 23);
  fill_places(problem, shape, tensors, random);
  for (const std::size_t slot : {kKeyCache, kValueCache}) {
    if (!problem.has(slot)) continue;
    fill_normal(tensors[slot], random, 1);
    if (shape.data == "wild") make_wild(tensors[slot]);
  }
}

std::vector<Expectation> expect_gradients(const Problem& problem, std::span<HostTensor> tensors,
                                          const Arithmetic& /*bits are moved*/,
                                          double /*max_flops*/) {
  const Places places = places_of(problem, tensors);
  std::vector<Expectation> expected;
  const auto expect_gradient = [&](std::size_t rows, std::size_t cache) {
    const PoolShape pool = pool_of(problem.spec(cache));
    Expectation to{.slot = rows}, left{.slot = cache};
    for (const std::int64_t place : places.slots) {
      for (std::int64_t head = 0; head < pool.heads; ++head) {
        std::vector<double> row(static_cast<std::size_t>(pool.dim), 0.0);
        if (place != kNowhere) {
          row =
              row_of(tensors[cache], {place / pool.page_size, head, place % pool.page_size}).read();
        }
        to.values.insert(to.values.end(), row.begin(), row.end());
      }
    }
    to.bounds.resize(to.values.size(), 0);
    left.elements = written_by_append(problem, tensors, cache);
    left.values.resize(left.elements.size(), 0);
    left.bounds.resize(left.elements.size(), 0);
    if (!to.values.empty()) expected.push_back(std::move(to));
    if (!left.elements.empty()) expected.push_back(std::move(left));
  };
  expect_gradient(kKeys, kKeyCache);
  if (problem.has(kValues)) expect_gradient(kValues, kValueCache);
  return expected;
}

}  // namespace

Workload append_workload() {
  Workload workload;
  workload.cases = [](const StorageTypes& types) {
    return is_code(types.of("key_cache")) ? codes_cases(types) : plain_cases(types);
  };
  workload.benchmarks = append_benchmarks;
  workload.fill = fill;
  workload.expect = expect;
  workload.bytes = [](const Problem& problem) {
    const auto& call = problem.as<AppendProblem>();
    const auto bits = static_cast<double>(bits_of(problem.dtype)) +
                      static_cast<double>(bits_of(problem.spec(kKeyCache).dtype));
    const auto features =
        static_cast<double>(call.keys.dim * call.keys.heads + call.values.dim * call.values.heads);
    return static_cast<double>(call.tokens) * features * bits / 8;
  };
  return workload;
}

Workload append_backward_workload() {
  Workload workload;
  workload.cases = [](const StorageTypes& types) {
    return gradients_of(plain_cases(types_of_call(types)));
  };
  workload.benchmarks = [](const StorageTypes& types) {
    return gradients_of(append_benchmarks(types_of_call(types)));
  };
  workload.fill = fill_gradients;
  workload.expect = expect_gradients;
  workload.bytes = [](const Problem& problem) {
    const auto& call = problem.as<AppendProblem>();
    const auto features =
        static_cast<double>(call.keys.dim * call.keys.heads + call.values.dim * call.values.heads);
    return static_cast<double>(3 * call.tokens) * features *
           static_cast<double>(bits_of(problem.dtype)) / 8;
  };
  return workload;
}

std::vector<std::size_t> written_by_append(const Problem& problem, std::span<HostTensor> tensors,
                                           std::size_t slot) {
  const auto& call = problem.as<AppendProblem>();
  const bool is_scale = slot == kKeyScale || slot == kValueScale;
  const PoolShape& pool = slot == kKeyCache || slot == kKeyScale ? call.keys : call.values;
  std::vector<std::size_t> written;
  if (is_scale && !has_own_scales(problem, slot, pool)) return written;
  const std::int64_t width = is_scale ? 1 : pool.dim;
  for (const std::int64_t place : places_of(problem, tensors).slots) {
    if (place == kNowhere) continue;
    for (std::int64_t head = 0; head < pool.heads; ++head) {
      const std::int64_t row =
          (place / pool.page_size * pool.heads + head) * pool.page_size + place % pool.page_size;
      for (std::int64_t i = 0; i < width; ++i)
        written.push_back(static_cast<std::size_t>(row * width + i));
    }
  }
  return written;
}

}  // namespace tessera::operations::kv_cache
