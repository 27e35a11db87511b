// SPDX-License-Identifier: Apache-2.0
// Rows that are copied: append_to_cache without codes, its gradient, and copy_pages.
#include <string>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/common/lanes.hpp"
#include "operations/common/launch.hpp"
#include "operations/kv_cache/launch.hpp"
#include "operations/kv_cache/passes.hpp"

namespace tessera::operations::kv_cache {
namespace {

// One launch of the kernel: rows (n, a, b) from and to, and by which lists.
struct Copying {
  std::int64_t count = 0, axis0 = 1, axis1 = 1, dim = 0;
  RowStrides from{}, to{};
  abi::u32 from_list = CACHE_NO_LIST, to_list = CACHE_NO_LIST;
  bool moves = false;  // leaves zeros in its place

  std::int64_t rows() const { return count * axis0 * axis1; }
};

// Nothing: the call has no such launch.
using Copied = std::optional<Copying> (*)(const Problem&);

std::optional<Copying> nothing_beside(const Problem& /*problem*/) { return std::nullopt; }

std::int64_t unit_of(const Problem& problem, const Copying& copying) {
  return kv_cache::unit_of(problem.dtype, copying.dim, copying.from, copying.to);
}

abi::u32 units_of_row(const Problem& problem, const Copying& copying) {
  const auto bits = static_cast<std::int64_t>(bits_of(problem.dtype));
  return static_cast<abi::u32>(copying.dim * bits / (8 * unit_of(problem, copying)));
}

// Elements of less than a byte come in units of several, others in several units.
abi::CacheRows in_units(const Problem& problem, const Copying& copying, RowStrides rows) {
  const auto bits = static_cast<std::int64_t>(bits_of(problem.dtype));
  const std::int64_t unit = 8 * unit_of(problem, copying);
  for (std::int64_t* stride : {&rows.offset, &rows.outer, &rows.inner, &rows.axis0, &rows.axis1})
    *stride = *stride * bits / unit;
  return narrowed(rows);
}

abi::CacheCopyArgs copy_arguments(const Problem& problem, const Copying& copying,
                                  const std::optional<Copying>& beside) {
  abi::CacheCopyArgs args{.rows = static_cast<abi::u32>(copying.rows()),
                          .axis0 = static_cast<abi::u32>(std::max<std::int64_t>(copying.axis0, 1)),
                          .axis1 = static_cast<abi::u32>(std::max<std::int64_t>(copying.axis1, 1)),
                          .units = units_of_row(problem, copying),
                          .from_list = copying.from_list,
                          .to_list = copying.to_list,
                          .moves = copying.moves ? 1U : 0U,
                          .from = in_units(problem, copying, copying.from),
                          .to = in_units(problem, copying, copying.to),
                          .more_units = 0,
                          .more_from = {},
                          .more_to = {}};
  if (beside) {
    args.more_units = units_of_row(problem, *beside);
    args.more_from = in_units(problem, *beside, beside->from);
    args.more_to = in_units(problem, *beside, beside->to);
  }
  return args;
}

// `more`: what the same launch copies beside it, as many rows by the same lists and units.
Pass copy_pass(std::string name, std::vector<std::size_t> bindings, Copied copied,
               Copied more = nothing_beside) {
  Pass pass;
  pass.name = std::move(name);
  pass.opencl = {.file = "kv_cache/rows/copy.cl", .entry = "cache_copy"};
  pass.vulkan = {.file = "kv_cache/rows/copy.comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.bindings.resize(5, kNoOperand);
  pass.constants = [copied](const Problem& problem, const Config&) -> std::vector<Define> {
    const auto copying = copied(problem);
    if (!copying) return {{"UNIT", 4}};
    return {{"UNIT", static_cast<std::uint32_t>(unit_of(problem, *copying))}};
  };
  pass.specialized_on = {{"LANES", "UNIT"}};
  pass.groups = [copied, more](const Problem& problem, const Config& config) {
    const auto copying = copied(problem);
    if (!copying) return Dim3{0, 0, 0};
    Dim3 groups = lane_groups(copying->rows(), config);
    if (more(problem)) groups.y = 2;
    return groups;
  };
  pass.args = [copied, more](const Problem& problem, const Config&) {
    const auto copying = copied(problem);
    return argument_bytes(copying ? copy_arguments(problem, *copying, more(problem))
                                  : abi::CacheCopyArgs{});
  };
  return pass;
}

// ---- append_to_cache ----------------------------------------------------------------------------

Copying appended(const Problem& problem, std::size_t rows, std::size_t cache) {
  const auto& call = problem.as<AppendProblem>();
  const PoolShape pool = pool_of(problem.spec(cache));
  return {.count = call.tokens,
          .axis0 = pool.heads,
          .dim = pool.dim,
          .from = rows_of_tokens(problem.spec(rows)),
          .to = rows_of_pool(problem.spec(cache)),
          .to_list = static_cast<abi::u32>(places_length(problem))};
}

std::optional<Copying> appended_keys(const Problem& problem) {
  return appended(problem, kKeys, kKeyCache);
}

// Whether one launch moves keys and values.
bool is_one_launch(const Problem& problem) {
  if (!problem.has(kValues)) return false;
  const Copying keys = appended(problem, kKeys, kKeyCache);
  const Copying values = appended(problem, kValues, kValueCache);
  return keys.rows() == values.rows() && unit_of(problem, keys) == unit_of(problem, values);
}

std::optional<Copying> values_beside(const Problem& problem) {
  if (!is_one_launch(problem)) return std::nullopt;
  return appended(problem, kValues, kValueCache);
}

std::optional<Copying> values_alone(const Problem& problem) {
  if (!problem.has(kValues) || is_one_launch(problem)) return std::nullopt;
  return appended(problem, kValues, kValueCache);
}

// ---- append_to_cache_backward -------------------------------------------------------------------

// Of a slot that several tokens have, the last one's gradient is the slot's.
Copying taken(const Problem& problem, std::size_t rows, std::size_t cache) {
  Copying copying = appended(problem, rows, cache);
  std::swap(copying.from, copying.to);
  std::swap(copying.from_list, copying.to_list);
  copying.moves = true;
  return copying;
}

std::optional<Copying> taken_keys(const Problem& problem) {
  return taken(problem, kKeys, kKeyCache);
}

std::optional<Copying> taken_beside(const Problem& problem) {
  if (!is_one_launch(problem)) return std::nullopt;
  return taken(problem, kValues, kValueCache);
}

std::optional<Copying> taken_alone(const Problem& problem) {
  if (!problem.has(kValues) || is_one_launch(problem)) return std::nullopt;
  return taken(problem, kValues, kValueCache);
}

// ---- copy_pages ---------------------------------------------------------------------------------

Copying paged(const Problem& problem) {
  const auto& call = problem.as<CopyProblem>();
  Copying copying{.count = call.pairs, .dim = call.page.back()};
  if (call.page.size() > 1) copying.axis1 = call.page[call.page.size() - 2];
  if (call.page.size() > 2) copying.axis0 = call.page[0];
  copying.from = rows_of_pages(problem.spec(call.one_pool ? kPool : kSource));
  copying.to = rows_of_pages(problem.spec(kPool));
  return copying;
}

// Pages in scratch, in elements.
RowStrides staged(const Problem& problem, const Copying& copying) {
  const Stage stage = stage_of(problem);
  const auto bits = static_cast<std::int64_t>(bits_of(problem.dtype));
  return {.offset = 8 * stage.lists / bits,
          .outer = 8 * stage.page / bits,
          .axis0 = copying.axis1 * copying.dim,
          .axis1 = copying.dim};
}

std::optional<Copying> to_stage(const Problem& problem) {
  if (!problem.as<CopyProblem>().one_pool) return std::nullopt;
  Copying copying = paged(problem);
  copying.to = staged(problem, copying);
  copying.from_list = 0;
  return copying;
}

std::optional<Copying> at_once(const Problem& problem) {
  Copying copying = paged(problem);
  const auto pairs = static_cast<abi::u32>(copying.count);
  copying.from_list = pairs;
  copying.to_list = 2 * pairs;
  return copying;
}

std::optional<Copying> from_stage(const Problem& problem) {
  if (!problem.as<CopyProblem>().one_pool) return std::nullopt;
  Copying copying = paged(problem);
  copying.from = staged(problem, copying);
  copying.to_list = 3 * static_cast<abi::u32>(copying.count);
  return copying;
}

Variant copying_variant(std::string name, std::string idea, Copied main) {
  Variant variant;
  variant.name = std::move(name);
  variant.idea = std::move(idea);
  variant.tunables = {
#include "operations/kv_cache/rows/copy.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
  variant.space = [main](const Problem& problem, const DeviceProfile& profile) {
    const Copying copying = *main(problem);
    const std::int64_t unit = unit_of(problem, copying);
    const std::int64_t bytes = copying.dim * static_cast<std::int64_t>(bits_of(problem.dtype)) / 8;
    return row_space(copying.rows(), bytes / unit, profile);
  };
  return variant;
}

// What finds the places of tokens, and what moves rows from or to them.
void add_placed_passes(Variant& variant, Pass keys, Pass values) {
  variant.passes = places_passes();
  variant.passes.push_back(std::move(keys));
  variant.passes.push_back(std::move(values));
  variant.scratch_bytes = places_bytes;
  variant.rejects = [](const Problem& problem, const Config& config, const DeviceProfile& profile) {
    const auto& call = problem.as<AppendProblem>();
    return rejects_rows(problem, call.tokens * call.keys.heads, config, profile);
  };
}

// Whether each token's work-group finds the places of all. PoCL, whose configurations have one
// item, would do so an item at a time.
bool are_few_in_groups(const Problem& problem, const Config& config) {
  return are_few(problem) && (!problem.has(kValues) || is_one_launch(problem)) &&
         config.group().x > 1;
}

Pass few_rows_pass() {
  Pass pass = copy_pass("few_rows", {kKeys, kKeyCache, kSlotMapping, kValues, kValueCache},
                        appended_keys, values_beside);
  pass.opencl = {.file = "kv_cache/rows/few.cl", .entry = "cache_few_rows"};
  pass.vulkan = {.file = "kv_cache/rows/few.comp", .entry = "main"};
  for (const std::size_t slot : {std::size_t{kBlockTables}, std::size_t{kKvLens},
                                 std::size_t{kNumSeqs}, std::size_t{kQueryStartLoc}, kErrors})
    pass.bindings.push_back(slot);
  pass.errors_at = offsetof(abi::CacheFewRowsArgs, few) + kFewErrorsAt;
  pass.specialized_on = {{"UNIT"}};
  pass.group_size = [](const Config&) { return Dim3{kFewItems}; };
  pass.groups = [](const Problem& problem, const Config& config) {
    if (!are_few_in_groups(problem, config)) return Dim3{0, 0, 0};
    return Dim3{static_cast<std::uint32_t>(problem.as<AppendProblem>().tokens),
                problem.has(kValues) ? 2U : 1U};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(abi::CacheFewRowsArgs{
        .few = few_arguments(problem),
        .copy = copy_arguments(problem, *appended_keys(problem), values_beside(problem))});
  };
  return pass;
}

// One launch in place of all others, where it does.
void add_few_rows(Variant& variant) {
  for (Pass& pass : variant.passes) {
    pass.groups = [groups = pass.groups](const Problem& problem, const Config& config) {
      return are_few_in_groups(problem, config) ? Dim3{0, 0, 0} : groups(problem, config);
    };
  }
  variant.passes.push_back(few_rows_pass());
}

Way the_only(Variant variant) {
  const auto space = variant.space;
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace

Way append_way() {
  Variant variant =
      copying_variant("rows", "places of tokens, then rows by units of 16 bytes", appended_keys);
  for (const StorageTypes& types : append_types()) {
    if (!is_code(types.of("key_cache"))) variant.types.push_back(types.name());
  }
  add_placed_passes(variant,
                    copy_pass("keys", {kKeys, kKeyCache, kScratch, kValues, kValueCache},
                              appended_keys, values_beside),
                    copy_pass("values", {kValues, kValueCache, kScratch}, values_alone));
  add_few_rows(variant);
  Way way = the_only(std::move(variant));
  way.rule.when = [](const Problem& problem, const DeviceProfile&) {
    return !is_code(problem.spec(kKeyCache).dtype);
  };
  return way;
}

Way append_backward_way() {
  Variant variant = copying_variant(
      "rows", "places of tokens, then rows by units of 16 bytes, which leave zeros", taken_keys);
  add_placed_passes(variant,
                    copy_pass("keys", {kKeyCache, kKeys, kScratch, kValueCache, kValues},
                              taken_keys, taken_beside),
                    copy_pass("values", {kValueCache, kValues, kScratch}, taken_alone));
  return the_only(std::move(variant));
}

Way copy_pages_way() {
  Variant variant = copying_variant(
      "rows", "lists of pages, then rows by units of 16 bytes; through scratch what is overwritten",
      at_once);
  variant.passes = pairs_passes();
  variant.passes.push_back(copy_pass("stage", {kPool, kScratch, kScratch}, to_stage));
  // One pass for each kind of call: its source is another operand.
  variant.passes.push_back(copy_pass("within", {kPool, kPool, kScratch},
                                     [](const Problem& problem) -> std::optional<Copying> {
                                       if (!problem.as<CopyProblem>().one_pool) return std::nullopt;
                                       return at_once(problem);
                                     }));
  variant.passes.push_back(copy_pass("between", {kSource, kPool, kScratch},
                                     [](const Problem& problem) -> std::optional<Copying> {
                                       if (problem.as<CopyProblem>().one_pool) return std::nullopt;
                                       return at_once(problem);
                                     }));
  variant.passes.push_back(copy_pass("unstage", {kScratch, kPool, kScratch}, from_stage));
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return static_cast<std::uint64_t>(stage_of(problem).bytes);
  };
  variant.rejects = [](const Problem& problem, const Config& config,
                       const DeviceProfile& profile) -> Refusal {
    const Copying copying = paged(problem);
    const int most = profile.backend == Backend::kVulkan ? 31 : 34;
    if (stage_of(problem).bytes >= std::int64_t{1} << most)
      return "needs " + std::to_string(stage_of(problem).bytes) +
             " bytes of scratch for pages that may be overwritten, and 2^" + std::to_string(most) +
             " are the most";
    return rejects_rows(problem, copying.rows(), config, profile);
  };
  return the_only(std::move(variant));
}

}  // namespace tessera::operations::kv_cache
