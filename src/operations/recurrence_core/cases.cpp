// SPDX-License-Identifier: Apache-2.0
// The calls that tests, benchmarks and the tuner make up.
#include "operations/common/cases.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/workload.hpp"

namespace tessera::operations::recurrence {
namespace {

// A call by its sizes, from which the cases of all operations are made.
struct Sizes {
  std::int64_t batch = 1, tokens = 1, heads = 1, key_dim = 8, value_dim = 8;
  bool gate = false, key_gate = false, gamma = false, gk = false, gv = false;
  bool initial = false, final = false;
  bool in_place = false;        // a state, of operations that have one, in place of both
  std::int64_t sequences = -1;  // packed, where not negative
  bool reverse = false;
  bool wide_decays = false;  // in f32, whatever the dtype of query
  std::int64_t gap = -1;     // not negative: unusual strides, and this many elements behind rows
};

class Maker {
 public:
  Maker(const RecurrenceSlots& slots, DType dtype) : slots_(slots), dtype_(dtype) {}

  // Operations that lack a decay of the case leave it out.
  Case make(std::string name, std::string why, const Sizes& sizes, std::string data) const {
    Case result{.name = std::move(name), .why = std::move(why), .data = std::move(data)};
    result.operands.resize(slots_.count);
    const auto put = [&](bool wanted, std::size_t slot, TensorSpec spec) {
      if (wanted && slot != kNoOperand) result.operands[slot] = std::move(spec);
    };
    const Shape rows{sizes.batch, sizes.tokens, sizes.heads};
    Shape keys = rows, values = rows;
    keys.push_back(sizes.key_dim);
    values.push_back(sizes.value_dim);
    const std::int64_t sequences = sizes.sequences < 0 ? sizes.batch : sizes.sequences;
    const Shape states{sequences, sizes.heads, sizes.key_dim, sizes.value_dim};
    const DType decays = sizes.wide_decays ? DType::kF32 : dtype_;
    const auto spec = [&](DType dtype, const Shape& shape) {
      if (sizes.gap < 0) return TensorSpec::contiguous(dtype, shape);
      return strided_view(dtype, shape, {2, 0, 1}, sizes.gap, sizes.gap);
    };
    put(true, slots_.query, spec(dtype_, keys));
    put(true, slots_.key, spec(dtype_, keys));
    put(true, slots_.value, spec(dtype_, values));
    put(true, slots_.beta, TensorSpec::contiguous(decays, rows));
    put(sizes.gate, slots_.g, TensorSpec::contiguous(decays, rows));
    put(sizes.key_gate, slots_.g, spec(decays, keys));
    put(sizes.gamma, slots_.gamma, TensorSpec::contiguous(decays, {sizes.heads}));
    put(sizes.gk, slots_.gk, spec(decays, keys));
    put(sizes.gv, slots_.gv, spec(decays, values));
    put(sizes.initial, slots_.initial_state, spec(DType::kF32, states));
    put(sizes.in_place, slots_.state, spec(DType::kF32, states));
    put(sizes.sequences >= 0, slots_.cu_seqlens,
        TensorSpec::contiguous(DType::kI32, {sizes.sequences + 1}));
    put(sizes.gap >= 0, slots_.output, spec(dtype_, values));
    put(sizes.final, slots_.final_state, spec(DType::kF32, states));
    put(true, slots_.grad_output, spec(dtype_, values));
    put(sizes.final, slots_.grad_final_state, spec(DType::kF32, states));
    for (const auto& [gradient, operand] : slots_.gradients()) {
      if (gradient == kNoOperand || !result.operands[operand]) continue;
      result.operands[gradient] = result.operands[operand];
    }
    result.options["reverse"] = sizes.reverse;
    if (slots_.of_layers) {
      result.options["layer_idx"] = std::int64_t{4};
      result.options["num_layers"] = std::int64_t{8};
    }
    return result;
  }

 private:
  RecurrenceSlots slots_;
  DType dtype_;
};

// Kinds of decay that two operations share with recurrent are checked there: their kernels are the
// same.
bool is_recurrent(const RecurrenceSlots& slots) { return slots.gk != kNoOperand; }
// So are those that delta_rule shares with gated_delta_rule.
bool is_gated_delta(const RecurrenceSlots& slots) { return slots.delta() && slots.g != kNoOperand; }

// Dims that matrix units take, and more tokens than they take at once.
template <class Add>
void add_chunks(Add add, bool forward) {
  Sizes keys{.batch = 2, .tokens = 75, .heads = 1, .key_dim = 48, .value_dim = 80};
  keys.gk = keys.gate = keys.gamma = keys.initial = keys.final = true;
  add("chunks", "whole and broken chunks of tokens, key dims that decay", keys, "normal");
  Sizes heads = keys;
  heads.gk = false;
  heads.reverse = true;
  add("chunks_of_heads", "the same where key dims decay alike, backwards", heads, "normal");
  Sizes packed{.tokens = 190, .heads = 2, .key_dim = 64, .value_dim = 48};
  packed.sequences = 6;
  packed.key_gate = packed.initial = packed.final = packed.reverse = packed.wide_decays = true;
  add("chunks_packed", "chunks begin with their sequences", packed, "gap");
  Sizes hard{.tokens = 90, .heads = 1, .key_dim = 64, .value_dim = 48};  // programs of packed
  hard.key_gate = hard.initial = hard.final = hard.wide_decays = true;
  add("chunks_strong", "decays of 0 and of -80 a step in chunks", hard, "strong");
  add("chunks_reset", "decays of minus infinity in chunks", hard, "reset");
  add("chunks_growing", "decays a little above 0 in chunks", hard, "growing");
  add("chunks_not_finite", "NaN and infinity reach no earlier token of a chunk", hard,
      "not_finite");
  add("chunks_large", "keys of which halves hold no sums of products", hard, "large");
  hard.key_gate = false;
  hard.gate = true;
  add("chunks_of_heads_strong", "decays of 0 and of -80 a step of all key dims", hard, "strong");
  add("chunks_of_heads_not_finite", "NaN and infinity where key dims decay alike", hard,
      "not_finite");
  if (forward) {
    Sizes in_place = hard;
    in_place.initial = in_place.final = false;
    in_place.in_place = true;
    add("chunks_in_place", "a state that changes in place, from chunk to chunk", in_place,
        "normal");
    add("chunks_in_place_growing", "the same where matrices can't be used for all heads", in_place,
        "growing");
  }
  Sizes spans{.tokens = 1500, .key_dim = 16, .value_dim = 16};
  spans.key_gate = spans.initial = spans.final = true;
  add("chunks_spans", "as many tokens as work-groups share", spans, "normal");
  add("chunks_spans_not_finite", "what is not finite in one of several spans", spans, "not_finite");
  Sizes widest{.tokens = 40, .key_dim = 256, .value_dim = 144};
  widest.key_gate = widest.initial = widest.final = true;
  add("chunks_widest", "the largest key dim of matrix units, two tiles of columns", widest,
      "normal");
}

// The same for delta rules, whose chunks are longer.
template <class Add>
void add_delta_chunks(Add add, bool backward) {
  Sizes plain{.batch = 2, .tokens = 75, .heads = 1, .key_dim = 48, .value_dim = 80};
  plain.initial = plain.final = true;
  add("chunks_kept", "whole and broken chunks of tokens, nothing is forgotten", plain, "normal");
  Sizes heads = plain;
  heads.gate = heads.reverse = true;
  add("chunks_of_heads", "the same where key dims decay alike, backwards", heads, "normal");
  Sizes packed{.tokens = 330, .heads = 2, .key_dim = 64, .value_dim = 48};
  packed.sequences = 6;
  packed.gate = packed.initial = packed.final = packed.reverse = packed.wide_decays = true;
  add("chunks_packed", "chunks begin with their sequences", packed, "gap");
  add("chunks_out_of_range", "the same where boundaries are wrong", packed, "out_of_range");
  // Many tokens would hide what the state before a chunk is off by.
  Sizes shorts{.tokens = 160, .heads = 2, .key_dim = 16, .value_dim = 16};
  shorts.sequences = 60;
  shorts.initial = shorts.final = true;
  add("chunks_short", "a few tokens for each of many states", shorts, "normal");
  Sizes hard{.tokens = 140, .heads = 1, .key_dim = 64, .value_dim = 48};  // programs of packed
  hard.gate = hard.initial = hard.final = hard.wide_decays = true;
  add("chunks_of_heads_strong", "decays of 0 and of -80 a step in chunks", hard, "strong");
  add("chunks_of_heads_reset", "decays of minus infinity in chunks", hard, "reset");
  add("chunks_of_heads_growing", "decays a little above 0 in chunks", hard, "growing");
  add("chunks_of_heads_not_finite", "NaN and infinity reach no earlier token of a chunk", hard,
      "not_finite");
  Sizes large = hard;
  large.tokens = 260;
  add("chunks_large", "changes that f16 does not hold, in the first of some chunks", large,
      "large");
  Sizes widest{.tokens = 70, .key_dim = 256, .value_dim = 144};
  widest.gate = widest.initial = widest.final = true;
  add("chunks_widest", "the largest key dim of matrix units, several tiles of columns", widest,
      "normal");
  if (backward) {
    Sizes full{.tokens = 130, .key_dim = 128, .value_dim = 128};
    full.gate = full.initial = full.final = full.wide_decays = true;
    add("chunks_full", "as many dims as gradients of chunks take, of values by halves", full,
        "normal");
    return;
  }
  Sizes in_place = hard;
  in_place.initial = in_place.final = false;
  in_place.in_place = true;
  in_place.key_dim = 128;
  add("chunks_in_place", "a state that changes in place, from chunk to chunk", in_place, "normal");
}

}  // namespace

std::vector<Case> conformance_cases(const RecurrenceSlots& slots, DType dtype) {
  const Maker maker(slots, dtype);
  std::vector<Case> table;
  const auto add = [&](const char* name, const char* why, const Sizes& sizes,
                       const char* data = "normal") {
    table.push_back(maker.make(name, why, sizes, data));
  };
  Sizes small{.batch = 2, .tokens = 37, .heads = 3, .key_dim = 13, .value_dim = 7};
  small.gate = small.gamma = true;
  add("small", "sizes that divide no tile and no vector", small);
  Sizes states = small;
  states.initial = states.final = states.reverse = true;
  add("reverse", "time runs backwards, from one state to another", states);
  Sizes packed{.tokens = 61, .heads = 2, .key_dim = 16, .value_dim = 12};
  packed.sequences = 6;
  packed.key_gate = packed.initial = packed.final = true;
  add("packed", "sequences of length 0 pass their state on; rows of none are 0 and may hold NaN",
      packed, "gap");
  Sizes wide{.tokens = 50, .heads = 2, .key_dim = 128, .value_dim = 96};
  wide.key_gate = wide.final = true;
  add("wide", "several tiles of columns", wide);
  if (!is_recurrent(slots) && !is_gated_delta(slots)) return table;

  add("single", "one token, one key dim, one value dim", {.key_dim = 1, .value_dim = 1});
  Sizes decode{.batch = 3, .heads = 2, .key_dim = 128, .value_dim = 128};
  decode.key_gate = decode.initial = decode.final = true;
  add("decode", "one token: states from one tensor to another", decode);
  if (is_recurrent(slots) && !slots.backward()) {
    decode.heads = 3;
    decode.value_dim = 40;
    decode.gk = decode.gamma = decode.wide_decays = true;
    add("decode_strong", "one token, fewer columns than lanes, two decays of key dims", decode,
        "strong");
    decode.gk = decode.gamma = decode.initial = false;
    add("decode_leap", "one token that grows beyond what a float holds", decode, "leap");
    decode.final = decode.wide_decays = false;
    add("decode_first", "one token, and no state is asked for", decode);
    decode.in_place = true;
    add("decode_aligned_in_place", "one token: states change in place by fours", decode);
  }
  Sizes all{.tokens = 19, .heads = 2, .key_dim = 16, .value_dim = 12};
  all.key_gate = all.gamma = all.gk = all.gv = all.initial = all.final = true;
  if (is_recurrent(slots)) add("all_decays", "four decays at once", all);
  all.wide_decays = true;
  add("wide_decays", "decays in f32", all);
  Sizes values = small;
  values.gv = values.final = true;
  if (is_recurrent(slots))
    add("value_decay", "a decay for each value dim beside that of the head", values);
  add("no_decay", "nothing is forgotten", {.tokens = 23, .heads = 2, .value_dim = 16});
  Sizes gk{.batch = 2, .tokens = 21, .heads = 2, .key_dim = 12, .value_dim = 20};
  gk.gk = gk.gate = gk.initial = true;
  if (is_recurrent(slots)) add("key_decay", "gk beside one number for a token", gk);
  Sizes widest{.tokens = 9, .key_dim = 512, .value_dim = 200};
  widest.gate = widest.initial = widest.final = true;
  add("widest", "the largest key dim", widest);
  Sizes empty = states;
  empty.tokens = 0;
  add("no_tokens", "seq 0: the state is passed on", empty);
  Sizes strong = packed;
  strong.sequences = -1;
  strong.tokens = 48;
  add("strong", "decays of 0 and of -80 a step, and of all between", strong, "strong");
  add("reset", "decays of minus infinity: the state begins anew", strong, "reset");
  add("growing", "decays a little above 0", strong, "growing");
  Sizes opposed{.batch = 2, .tokens = 11, .heads = 2, .key_dim = 13, .value_dim = 7};
  opposed.initial = opposed.final = opposed.gate = opposed.gk = true;
  if (is_recurrent(slots)) {
    add("opposed", "large decays of tokens and key dims that cancel out", opposed, "opposed");
    opposed.gk = false;
    opposed.gv = true;
    add("opposed_values", "the same of tokens and value dims", opposed, "opposed");
    opposed.gate = false;
    opposed.gk = true;
    add("opposed_rows", "the same of key dims and value dims", opposed, "opposed");
  }
  if (is_recurrent(slots) && !slots.backward()) {
    Sizes burst{.tokens = 37, .heads = 2, .key_dim = 13, .value_dim = 7};
    burst.key_gate = true;
    add("burst", "an empty state stays empty, however fast it grows", burst, "burst");
  }
  if (is_recurrent(slots) || is_gated_delta(slots)) {
    Sizes leap{.tokens = 21, .heads = 2, .key_dim = 13, .value_dim = 7};
    leap.key_gate = leap.final = true;
    add("leap", "factors beyond what a float holds leave an empty state empty", leap, "leap");
    leap.gv = true;
    if (is_recurrent(slots)) add("leap_values", "the same where values decay, too", leap, "leap");
  }
  add("not_finite", "NaN and infinity reach what comes after their token only", strong,
      "not_finite");
  packed.reverse = true;
  add("packed_reverse", "each sequence from its end", packed, "gap");
  add("out_of_range", "boundaries below 0 and beyond the tokens", packed, "out_of_range");
  add("decreasing", "boundaries that decrease: sequences do not overlap", packed, "decreasing");
  packed.sequences = 0;
  packed.initial = packed.final = false;
  add("no_sequences", "cu_seqlens of one element: all rows are 0", packed);
  packed.sequences = 90;
  packed.final = true;
  add("many_sequences", "more sequences than tokens", packed);
  Sizes strided = small;
  strided.gap = 3;
  strided.key_gate = strided.initial = strided.final = strided.gk = true;
  strided.gate = false;
  add("strided", "unusual order, odd gaps and offsets", strided);
  Sizes aligned{.batch = 2, .tokens = 18, .heads = 2, .key_dim = 16, .value_dim = 16};
  aligned.gap = 4;
  aligned.key_gate = true;
  add("strided_aligned", "unusual order, but vectors are aligned", aligned);
  Sizes long_call{.tokens = 700, .key_dim = 8, .value_dim = 4};
  long_call.gate = long_call.final = true;
  add("long", "many more tokens than a tile", long_call);
  if (!slots.backward()) {
    Sizes in_place = small;
    in_place.in_place = in_place.reverse = true;
    add("in_place", "the state becomes what it is after the last token", in_place);
    in_place.gap = 3;
    add("in_place_strided", "nothing between the rows of states changes", in_place);
    in_place.gap = -1;
    in_place.tokens = 1;
    add("decode_in_place", "one token: states change in place", in_place);
    in_place = {.tokens = 61, .heads = 2, .key_dim = 16, .value_dim = 12, .key_gate = true};
    in_place.in_place = true;
    in_place.sequences = 6;
    add("packed_in_place", "the state of a sequence of length 0 stays", in_place, "gap");
  }
  const std::size_t plain = table.size();
  if (is_recurrent(slots)) add_chunks(add, !slots.backward());
  if (is_gated_delta(slots)) add_delta_chunks(add, slots.backward());
  for (Case& each : std::span(table).subspan(plain))
    each.variants = {"cpu", "mma", "cooperative"};  // that take tokens by chunks
  return table;
}

std::vector<Case> edge_cases(const RecurrenceSlots& slots, DType dtype, const Config& config) {
  std::vector<Case> table;
  if (!is_recurrent(slots) && !is_gated_delta(slots)) return table;
  const Maker maker(slots, dtype);
  const bool chunks = slots.delta() && config.get("STAGES", 0) != 0;
  const std::int64_t tokens = chunks ? RECUR_DELTA_CHUNK : config.get("TOKENS", 16);
  for (const int step : {-1, 0, 1}) {
    const std::string suffix = step < 0 ? "-1" : step > 0 ? "+1" : "";
    Sizes sizes{.tokens = std::max<std::int64_t>(1, 2 * tokens + step), .heads = 2};
    sizes.key_dim = sizes.value_dim = 16;
    (chunks ? sizes.gate : sizes.key_gate) = true;
    sizes.initial = sizes.final = true;
    table.push_back(
        maker.make("tokens" + suffix, "the edge of the tokens of a block", sizes, "normal"));
  }
  return table;
}

std::vector<Case> benchmark_cases(const RecurrenceSlots& slots, DType dtype) {
  const Maker maker(slots, dtype);
  const auto with_gates = [&](Sizes sizes) {
    (slots.delta() ? sizes.gate : sizes.key_gate) = true;
    return sizes;
  };
  std::vector<Case> table;
  const Sizes cpu{.tokens = 4096, .heads = 8, .key_dim = 128, .value_dim = 128};
  const Sizes gpu{.tokens = 32768, .heads = 16, .key_dim = 128, .value_dim = 128};
  table.push_back(maker.make("t4096_h8_d128", "a prompt", with_gates(cpu), "normal"));
  table.push_back(maker.make("t32768_h16_d128", "a long prompt", with_gates(gpu), "normal"));
  if (slots.backward()) return table;
  for (const auto& [batch, heads] : {std::pair{16, 64}, std::pair{256, 32}}) {
    Sizes decode{.batch = batch, .heads = heads, .key_dim = 128, .value_dim = 128};
    decode.initial = decode.final = true;
    table.push_back(
        maker.make("b" + std::to_string(batch) + "_t1_h" + std::to_string(heads) + "_d128",
                   "decoding: states are read and written", with_gates(decode), "normal"));
  }
  return table;
}

}  // namespace tessera::operations::recurrence
