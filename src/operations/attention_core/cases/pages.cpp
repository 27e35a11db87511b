// SPDX-License-Identifier: Apache-2.0
// Made-up calls whose keys lie in pages.
#include "operations/attention_core/oracle/pages.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "base/system/parallel.hpp"
#include "operations/attention_core/cases/workload.hpp"
#include "operations/common/cases.hpp"

namespace tessera::operations::attention {
DType stored_dtype(const StorageTypes& types) {
  return types.operands().empty() ? types.dtype() : types.operands().back().second;
}

double typical_code(DType code) { return code == DType::kI8 ? 40 : code == DType::kI4 ? 2.5 : 8; }

namespace {

struct PagedSizes {
  std::int64_t sequences = 3, heads = 8, kv_heads = 2, head_dim = 64, value_dim = 0;
  std::int64_t page_size = 16, per_sequence = 7;
  std::int64_t rows = 41;  // query rows of packed sequences
};

// All that no row sees is NaN, and in tables behind lengths is garbage. Data: "normal", all lengths
// are as long as can be; "ragged", of all kinds; "apart", the same, where codes of some tokens
// are much larger than those of others, and their scales smaller; "hostile", anything in tables,
// lengths and starts.
struct PagedCaseShape {
  std::string name, why;
  PagedSizes sizes{};
  Options options{};
  std::uint32_t features = 0;  // kSinks, kHeadSinks, kLogSumExp
  ScaleOf scale_of{};          // of codes
  bool apart = false;          // keys and values in pools of their own, where they may be in one
  bool distribution = false;   // of packed sequences, said and checked
  std::string data = "ragged";
  std::uint64_t seed = 1;
};

// The scales of keys or values, in one of the ways to share them.
TensorSpec scales_of(const TensorSpec& rows, ScaleOf scale_of, std::size_t heads_axis) {
  Shape shape(rows.shape.begin(), rows.shape.end() - 1);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const bool kept = axis == 0 ? scale_of == ScaleOf::kTokenHead || scale_of == ScaleOf::kPage
                      : axis == heads_axis
                          ? scale_of == ScaleOf::kTokenHead || scale_of == ScaleOf::kHead
                          : scale_of == ScaleOf::kTokenHead;
    if (!kept) shape[axis] = 1;
  }
  return TensorSpec::contiguous(DType::kF32, shape);
}

Case make_paged_case(const AttentionSlots& all_slots, const StorageTypes& types,
                     const PagedCaseShape& shape) {
  const AttentionSlots slots = shape.apart ? with_pools_apart(all_slots) : all_slots;
  const DType dtype = types.dtype(), stored = stored_dtype(types);
  const PagedSizes& s = shape.sizes;
  const bool packed = slots.query_start_loc != kNoOperand;
  const std::int64_t value_dim = s.value_dim == 0 ? s.head_dim : s.value_dim;
  Case result{.name = shape.name,
              .why = shape.why,
              .options = shape.options,
              .data = shape.data,
              .seed = shape.seed};
  const auto set = [&](std::size_t slot, DType type, Shape dims) {
    result.operands.resize(std::max(result.operands.size(), slot + 1));
    result.operands[slot] = TensorSpec::contiguous(type, std::move(dims));
  };
  const std::int64_t rows = packed ? s.rows : s.sequences;
  const std::int64_t pages = s.sequences * s.per_sequence + 2;
  set(slots.query, dtype, {rows, s.heads, s.head_dim});
  if (slots.key == slots.value) {
    set(slots.key, stored, {pages, s.page_size, 2 * s.kv_heads, s.head_dim});
  } else if (packed) {
    set(slots.key, stored, {pages, s.page_size, s.kv_heads, s.head_dim});
    set(slots.value, stored, {pages, s.page_size, s.kv_heads, value_dim});
  } else {
    set(slots.key, stored, {pages, s.kv_heads, s.page_size, s.head_dim});
    set(slots.value, stored, {pages, s.kv_heads, s.page_size, value_dim});
  }
  set(slots.context_lens, DType::kI32, {s.sequences});
  set(slots.block_tables, DType::kI32, {s.sequences, s.per_sequence});
  if (packed) {
    set(slots.query_start_loc, DType::kI32, {s.sequences + 1});
    set(slots.num_seqs, DType::kI32, {1});
    if (shape.distribution) set(slots.distribution, DType::kI32, {3});
  }
  if ((shape.features & kSinks) != 0) set(slots.sinks, DType::kF32, {2});
  if ((shape.features & kHeadSinks) != 0) set(slots.sinks, dtype, {s.heads, 3});
  if ((shape.features & kLogSumExp) != 0)
    set(slots.log_sum_exp, DType::kF32, packed ? Shape{s.heads, rows} : Shape{rows, s.heads});
  for (const auto& [slot, of] :
       {std::pair{slots.key_scale, slots.key}, std::pair{slots.value_scale, slots.value}}) {
    if (!is_code(stored)) break;
    result.operands.resize(std::max(result.operands.size(), slot + 1));
    result.operands[slot] = scales_of(*result.operands[of], shape.scale_of, packed ? 2 : 1);
  }
  return result;
}

class PagedFiller {
 public:
  PagedFiller(const Problem& problem, const Case& shape, std::span<HostTensor> tensors)
      : problem_(problem),
        call_(problem.as<AttentionProblem>()),
        random_(shape.seed * 1000003 + 17),
        hostile_(shape.data == "hostile"),
        full_(shape.data == "normal"),
        apart_(shape.data == "apart"),
        tensors_(tensors) {}

  void fill() {
    const AttentionSlots& slots = call_.slots;
    const double sequences = count();
    write(slots.num_seqs, {sequences});
    const Values boundaries = starts();
    write(slots.query_start_loc, boundaries);
    write(slots.distribution, ends(boundaries, sequences));
    write(slots.context_lens, lengths());
    write(slots.block_tables, table());
    write(slots.query, normal(slots.query, 1));
    write(slots.sinks, normal(slots.sinks, 2));
    write_pool(slots.key, slots.key_scale);
    if (slots.value != slots.key) write_pool(slots.value, slots.value_scale);
  }

 private:
  using Values = std::vector<double>;

  void write(std::size_t slot, const Values& values) {
    if (problem_.has(slot)) tensors_[slot].write(values);
  }
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
  }
  bool one_of(std::int64_t n) { return below(n) == 0; }
  // Of any kind, near `near` or far from it.
  double garbage(std::int64_t near) {
    const double kinds[] = {-1,
                            -2,
                            static_cast<double>(near),
                            static_cast<double>(near + 1),
                            1048576,
                            double{std::numeric_limits<std::int32_t>::min()},
                            double{std::numeric_limits<std::int32_t>::max()}};
    return kinds[below(std::ssize(kinds))];
  }

  // The last line of packed sequences is not used.
  double count() {
    if (hostile_ && one_of(4)) return garbage(call_.paged.sequences);
    return static_cast<double>(std::max<std::int64_t>(call_.paged.sequences - (full_ ? 0 : 1), 1));
  }

  // Decoding, prefill and chunks by turns: one row, most of the rest, a few. Some rows are left.
  Values starts() {
    Values values(static_cast<std::size_t>(call_.paged.sequences + 1));
    rows_.assign(values.size(), 1);
    const std::int64_t even = call_.q_len / std::max<std::int64_t>(call_.paged.sequences, 1);
    std::int64_t start = 0;
    for (std::size_t n = 0; n < values.size(); ++n) {
      values[n] = static_cast<double>(start);
      const std::int64_t left = std::max<std::int64_t>(call_.q_len - start - 1, 0);
      rows_[n] = std::min(left, full_ ? even : n % 3 == 0 ? 1 : n % 3 == 1 ? left / 2 : 3);
      start += rows_[n];
      if (hostile_ && one_of(5)) values[n] = garbage(call_.q_len);
    }
    return values;
  }

  // The first sequences of one row are said to decode, of hostile ones too many.
  Values ends(const Values& starts, double sequences) const {
    const double most = std::min(sequences, static_cast<double>(call_.paged.sequences));
    double decoding = hostile_ ? 2 : 0;
    for (std::size_t n = 0; static_cast<double>(n) < most && starts[n + 1] - starts[n] == 1; ++n)
      ++decoding;
    return {decoding, decoding, sequences};
  }

  // All the room, one token more than the rows, a page less a token, …; without rows also none.
  Values lengths() {
    Values values(static_cast<std::size_t>(call_.paged.sequences));
    for (std::size_t n = 0; n < values.size(); ++n) {
      const std::int64_t least = call_.packed ? rows_[n] : 0;
      const std::int64_t kinds[] = {call_.kv_len, least, least + below(call_.kv_len + 1),
                                    call_.kv_len - call_.paged.size - 1};
      values[n] = static_cast<double>(
          std::clamp(kinds[full_ ? 0 : n % 4], least, std::max(least, call_.kv_len)));
      if (hostile_ && one_of(5)) values[n] = garbage(call_.kv_len);
    }
    lengths_ = values;
    return values;
  }

  // Pages in any order; behind the length garbage.
  Values table() {
    Values pages(static_cast<std::size_t>(call_.paged.pages));
    std::iota(pages.begin(), pages.end(), 0.0);
    std::shuffle(pages.begin(), pages.end(), random_);
    const auto line = static_cast<std::size_t>(call_.paged.per_sequence);
    Values values(line * lengths_.size());
    for (std::size_t n = 0; n < values.size(); ++n) {
      const bool used = static_cast<double>(n % line) * static_cast<double>(call_.paged.size) <
                        lengths_[n / line];
      values[n] = used ? pages[n % pages.size()] : garbage(call_.paged.pages);
      if (used && hostile_ && one_of(9)) values[n] = garbage(call_.paged.pages);
      if (used && hostile_ && one_of(9)) values[n] = pages[0];  // of several sequences
    }
    return values;
  }

  Values normal(std::size_t slot, double deviation) {
    if (!problem_.has(slot)) return {};
    std::normal_distribution<double> distribution(0, deviation);
    Values values(static_cast<std::size_t>(problem_.spec(slot).elements()));
    for (double& value : values) value = distribution(random_);
    return values;
  }

  // Of a row's codes, about as far as the type has codes.
  double growth(std::size_t row) const {
    const double most = call_.stored == DType::kE5M2 ? 0x1p10 : 0x1p4;
    return !apart_ ? 1 : row % 4 == 0 ? 1 / most : most;
  }

  // Codes over most of their range, and scales that make numbers near 1 of them.
  void write_pool(std::size_t slot, std::size_t scale) {
    Values values = pool(slot);
    if (!call_.has_codes()) return write(slot, values);
    const double range = typical_code(call_.stored);
    const auto dim = static_cast<std::size_t>(problem_.spec(slot).shape.back());
    for (std::size_t n = 0; n < values.size(); ++n) values[n] *= range * growth(n / dim);
    write(slot, values);
    Values scales(static_cast<std::size_t>(problem_.spec(scale).elements()));
    std::uniform_real_distribution<double> distribution(0.5, 1.5);
    for (std::size_t n = 0; n < scales.size(); ++n)
      scales[n] = distribution(random_) / (range * growth(n));
    write(scale, scales);
  }

  // NaN in all slots that nobody sees.
  Values pool(std::size_t slot) {
    const std::int64_t size = call_.paged.size;
    std::vector<bool> seen(static_cast<std::size_t>(call_.paged.pages * size));
    for (const PagedSequence& sequence : paged_sequences(problem_, tensors_)) {
      const std::int64_t before = sequence.keys - sequence.rows - call_.window_left;
      for (std::int64_t key = std::max<std::int64_t>(before, 0);
           sequence.rows > 0 && key < sequence.keys; ++key) {
        const std::int64_t page = sequence.pages[static_cast<std::size_t>(key / size)];
        if (page >= 0) seen[static_cast<std::size_t>(page * size + key % size)] = true;
      }
    }
    const Shape& shape = problem_.spec(slot).shape;
    const bool heads_first = call_.has_heads_first();
    const std::int64_t inner = shape[3], middle = shape[2] * inner, page = shape[1] * middle;
    Values values(static_cast<std::size_t>(problem_.spec(slot).elements()));
    const std::uint64_t seed = random_();
    parallel_for(static_cast<std::size_t>(call_.paged.pages), [&](std::size_t number) {
      std::mt19937_64 random(seed + number);
      std::normal_distribution<double> distribution;
      for (std::int64_t n = 0; n < page; ++n) {
        const std::int64_t token = heads_first ? n % middle / inner : n / middle;
        const auto first = static_cast<std::int64_t>(number);
        values[static_cast<std::size_t>(first * page + n)] =
            seen[static_cast<std::size_t>(first * size + token)]
                ? distribution(random)
                : std::numeric_limits<double>::quiet_NaN();
      }
    });
    return values;
  }

  const Problem& problem_;
  const AttentionProblem& call_;
  std::mt19937_64 random_;
  bool hostile_, full_, apart_;
  std::span<HostTensor> tensors_;
  std::vector<std::int64_t> rows_;
  Values lengths_;
};

std::vector<PagedCaseShape> shapes_of_all() {
  return {
      {.name = "pages",
       .why = "pages in any order, the last one in part, NaN in all that nobody sees",
       .features = kLogSumExp},
      {.name = "one_token",
       .why = "pages of one token",
       .sizes = {.sequences = 5, .page_size = 1, .per_sequence = 71},
       .features = kLogSumExp},
      {.name = "odd_page",
       .why = "a page size that divides no tile",
       .sizes = {.sequences = 6, .page_size = 23, .per_sequence = 9},
       .scale_of = ScaleOf::kTensor},
      {.name = "large_page",
       .why = "pages longer than a tile",
       .sizes = {.sequences = 3, .page_size = 256, .per_sequence = 2}},
      {.name = "policies",
       .why = "a window, a cap, a scale and sinks of each head",
       .sizes = {.sequences = 5},
       .options = {{"sliding_window", std::int64_t{29}}},
       .features = kHeadSinks | kLogSumExp,
       .scale_of = ScaleOf::kHead,
       .distribution = true},
      {.name = "sinks",
       .why = "sequences without keys beside sinks",
       .sizes = {.sequences = 5},
       .features = kSinks | kLogSumExp},
      {.name = "splits",
       .why = "a pinned number of splits, more than some have blocks",
       .sizes = {.sequences = 4, .per_sequence = 19},
       .options = {{"num_splits", std::int64_t{3}}},
       .features = kHeadSinks | kLogSumExp,
       .scale_of = ScaleOf::kPage},
      {.name = "odd",
       .why = "a head_dim that divides no vector, one head",
       .sizes = {.sequences = 3, .heads = 1, .kv_heads = 1, .head_dim = 7, .page_size = 5}},
      {.name = "group_128",
       .why = "as many query heads to a key head as there may be",
       .sizes = {.sequences = 2, .heads = 128, .kv_heads = 1}},
      {.name = "hostile",
       .why = "anything in tables, lengths and starts",
       .sizes = {.sequences = 7},
       .features = kLogSumExp,
       .data = "hostile",
       .seed = 3},
      {.name = "hostile_window",
       .why = "the same inside a window, with sinks",
       .sizes = {.sequences = 7},
       .options = {{"sliding_window", std::int64_t{29}}},
       .features = kHeadSinks | kLogSumExp,
       .distribution = true,
       .data = "hostile",
       .seed = 5},
  };
}

std::vector<Case> paged_cases(const AttentionSlots& slots, const StorageTypes& types) {
  std::vector<PagedCaseShape> shapes = shapes_of_all();
  const bool packed = slots.query_start_loc != kNoOperand;
  if (packed) {
    std::erase_if(shapes, [](const PagedCaseShape& shape) { return shape.name == "group_128"; });
    shapes.push_back({.name = "prefill",
                      .why = "rows of many tiles, each sequence whole",
                      .sizes = {.sequences = 3, .per_sequence = 9, .rows = 301},
                      .features = kLogSumExp,
                      .data = "normal"});
    shapes.push_back({.name = "pools",
                      .why = "keys and values in pools of their own",
                      .features = kLogSumExp,
                      .scale_of = ScaleOf::kHead,
                      .apart = true});
    if (!is_code(stored_dtype(types))) {
      shapes.push_back({.name = "value_pool",
                        .why = "values of another width in a pool of their own",
                        .sizes = {.head_dim = 40, .value_dim = 24},
                        .apart = true});
    }
    shapes.push_back(
        {.name = "chunks",
         .why = "a head_dim that matrix units pad, pages of which eight tokens are in a tile",
         .sizes = {.sequences = 4,
                   .head_dim = stored_dtype(types) == DType::kF16 ? 72 : 64,
                   .page_size = 24,
                   .per_sequence = 17,
                   .rows = 333},
         .options = {{"sliding_window", std::int64_t{201}}},
         .features = kHeadSinks | kLogSumExp});
  } else {
    shapes.push_back({.name = "value_dim",
                      .why = "values of another width",
                      .sizes = {.head_dim = 40, .value_dim = 24}});
    if (stored_dtype(types) == DType::kE4M3FN || stored_dtype(types) == DType::kE5M2) {
      shapes.push_back({.name = "scales_apart",
                        .why = "weights times scales that are no halves beside those of others",
                        .features = kLogSumExp,
                        .scale_of = ScaleOf::kTokenHead,
                        .data = "apart"});
    }
  }
  std::vector<Case> cases;
  for (PagedCaseShape& shape : shapes) {
    if (shape.name == "odd" && is_packed(stored_dtype(types))) shape.sizes.head_dim = 6;
    if (shape.name == "policies") {
      const std::string prefix = packed ? "" : "attn_";
      shape.options[prefix + "logits_soft_cap"] = 5.0;
      shape.options[packed ? "softmax_scale" : "attn_scale"] = 0.3;
    }
    cases.push_back(make_paged_case(slots, types, shape));
  }
  Case strided = make_paged_case(
      slots, types,
      {.name = "strided", .why = "heads before pages in memory, with gaps", .sizes = {}});
  for (const std::size_t slot : {slots.key, slots.value}) {
    strided.operands[slot] =
        strided_view(stored_dtype(types), strided.operands[slot]->shape, {1, 0, 2}, 8, 16);
  }
  cases.push_back(strided);
  return cases;
}

std::vector<Case> paged_benchmarks(const AttentionSlots& slots, const StorageTypes& types) {
  std::vector<Case> cases;
  for (const std::int64_t size : {16, 64}) {
    cases.push_back(make_paged_case(slots, types,
                                    {.name = "b8_h32_kv8_k4096_d128_page" + std::to_string(size),
                                     .why = "decoding: bound by memory",
                                     .sizes = {.sequences = 8,
                                               .heads = 32,
                                               .kv_heads = 8,
                                               .head_dim = 128,
                                               .page_size = size,
                                               .per_sequence = 4096 / size,
                                               .rows = 8},
                                     .data = "normal"}));
  }
  if (slots.query_start_loc == kNoOperand) return cases;
  for (const std::int64_t dim : {64, 128}) {
    cases.push_back(make_paged_case(slots, types,
                                    {.name = "s1_h8_q2048_d" + std::to_string(dim) + "_page64",
                                     .why = "prefill, as flash_attention's of 2048 causal rows",
                                     .sizes = {.sequences = 1,
                                               .heads = 8,
                                               .kv_heads = 8,
                                               .head_dim = dim,
                                               .page_size = 64,
                                               .per_sequence = 32,
                                               .rows = 2048},
                                     .data = "normal"}));
  }
  return cases;
}

}  // namespace

Workload paged_workload(const Operation& operation) {
  const AttentionSlots slots = attention_slots(operation.operands);
  return {
      .cases = [slots](const StorageTypes& types) { return paged_cases(slots, types); },
      .benchmarks = [slots](const StorageTypes& types) { return paged_benchmarks(slots, types); },
      .fill = [](const Problem& problem, const Case& shape,
                 std::span<HostTensor> tensors) { PagedFiller(problem, shape, tensors).fill(); },
      .expect = expect_attention,
      .flops = forward_flops};
}

}  // namespace tessera::operations::attention
