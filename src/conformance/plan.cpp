// SPDX-License-Identifier: Apache-2.0
#include "conformance/plan.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/plan.hpp"
#include "selection/selector.hpp"
#include "tessera/error.hpp"

namespace tessera::conformance {
namespace {

// What a quick check may build of a variant's kernels beyond each of them once: where the variant
// runs on what it was made for, and where it is a GPU's kernel on a CPU; and for edges of its
// tiles.
constexpr std::size_t kMore = 6, kMoreOfGpus = 2, kMoreForEdges = 1;

bool is_same(const Case& a, const Case& b) {
  return a.name == b.name && a.operands == b.operands && a.options == b.options &&
         a.data == b.data && a.seed == b.seed;
}

bool is_made_for(const Case& shape, const Variant& variant) {
  return shape.variants.empty() ||
         std::ranges::find(shape.variants, variant.name) != shape.variants.end();
}

}  // namespace

std::string kernels_of(const Variant& variant, const StorageTypes& types, Backend backend) {
  std::string files = types.name();
  for (const Pass& pass : variant.passes)
    files += "|" + (backend == Backend::kVulkan ? pass.vulkan.file : pass.opencl.file);
  return files;
}

Plan::Plan(const Context& context, const Operation& operation, const CheckOptions& options,
           Shared& shared, Skip skip)
    : context_(context),
      operation_(operation),
      options_(options),
      shared_(shared),
      skip_(std::move(skip)),
      earlier_(shared.built),
      planned_(shared.built) {}

std::vector<StorageTypes> Plan::types_of(const Variant& variant) const {
  std::vector<StorageTypes> types = operation_.types;
  if (types.empty()) {
    const std::vector<DType>& dtypes =
        variant.dtypes.empty() ? operation_.operands.front().dtypes : variant.dtypes;
    types.assign(dtypes.begin(), dtypes.end());
  }
  std::erase_if(types, [&](const StorageTypes& one) {
    return !takes(variant, one) || (options_.types && one.name() != *options_.types);
  });
  if (options_.quick) leave_out_repetitions(types);
  return types;
}

bool Plan::is_asked_for(const Variant& variant) const {
  return options_.variant.empty() || options_.variant == variant.name;
}

std::vector<StorageTypes> Plan::all_types() const {
  std::vector<std::vector<StorageTypes>> lists;
  for (const Variant& variant : operation_.variants) {
    if (is_asked_for(variant)) lists.push_back(types_of(variant));
  }
  // A variant for one storage type says nothing about their order, even if it comes first.
  std::ranges::stable_sort(lists, std::ranges::greater(),
                           [](const std::vector<StorageTypes>& types) { return types.size(); });
  std::vector<StorageTypes> all;
  for (const std::vector<StorageTypes>& list : lists) {
    for (const StorageTypes& types : list) {
      if (std::ranges::find(all, types) == all.end()) all.push_back(types);
    }
  }
  return all;
}

std::vector<std::pair<Case, std::vector<Subject>>> Plan::cases(const StorageTypes& types) {
  std::vector<Case> table =
      operation_.workload.cases ? operation_.workload.cases(types) : std::vector<Case>{};
  for (Case& shape : table) ask_precision(shape);
  std::vector<std::vector<Subject>> subjects(table.size());
  std::vector<std::pair<Case, std::vector<Subject>>> edges;
  for (const Variant& variant : operation_.variants) {
    const std::vector<StorageTypes> taken = types_of(variant);
    if (!is_asked_for(variant) || std::ranges::find(taken, types) == taken.end()) continue;
    const bool first_types = types == taken.front();
    for (const Config& config : choose(variant, types, table, subjects)) {
      if (!options_.edge_cases || !operation_.workload.edge_cases) break;
      if (options_.quick && !first_types) break;
      for (Case& shape : edges_of(variant, config, types)) {
        const auto same = std::ranges::find_if(
            edges, [&](const auto& known) { return is_same(known.first, shape); });
        if (same == edges.end()) {
          edges.push_back({shape, {{&variant, config}}});
        } else {
          same->second.push_back({&variant, config});
        }
      }
    }
  }
  std::vector<std::pair<Case, std::vector<Subject>>> all;
  for (std::size_t n = 0; n < table.size(); ++n)
    all.emplace_back(std::move(table[n]), std::move(subjects[n]));
  std::ranges::move(edges, std::back_inserter(all));
  std::erase_if(all, [&](const auto& one) { return !is_named(one.first); });
  return all;
}

// A quick check leaves out what another operation has run, and what is not worth its programs.
std::vector<Case> Plan::edges_of(const Variant& variant, const Config& config,
                                 const StorageTypes& types) {
  std::vector<Case> edges = operation_.workload.edge_cases(types, config);
  for (Case& shape : edges) ask_precision(shape);
  if (!options_.quick) return edges;
  std::erase_if(edges, [&](const Case& shape) {
    return has_programs(earlier_, programs_of(shape, variant, config));
  });
  std::vector<Programs> needs;
  for (const Case& shape : edges) needs.push_back(programs_of(shape, variant, config));
  const std::vector<bool> kept =
      sample_of(needs, {.kernels = false, .more = kMoreForEdges, .one_at_least = false}, planned_);
  std::vector<Case> left;
  for (std::size_t n = 0; n < edges.size(); ++n)
    if (kept[n]) left.push_back(std::move(edges[n]));
  return left;
}

// Adds the variant to the cases that it runs, and returns the configurations whose edges count.
std::vector<Config> Plan::choose(const Variant& variant, const StorageTypes& types,
                                 const std::vector<Case>& cases,
                                 std::vector<std::vector<Subject>>& subjects) {
  const bool first_types = types == types_of(variant).front();
  std::vector<Candidate> candidates;
  std::vector<std::size_t> others;  // cases that are not in the sample
  for (std::size_t n = 0; n < cases.size(); ++n) {
    if (!is_named(cases[n])) continue;
    Problem problem = make_problem(operation_, cases[n].operands, cases[n].options);
    const bool is_asked = is_made_for(cases[n], variant) && is_chosen(variant, problem, cases[n]);
    if (options_.quick && !is_in_sample(n, first_types, is_asked)) {
      others.push_back(n);
    } else if (const Refusal no = add(std::move(problem), n, variant, candidates)) {
      skip_(variant, types, cases[n], *no);
    }
  }
  add_missing(variant, share_of(variant, types), cases, others, candidates);
  if (!options_.quick) return take_all(variant, candidates, subjects);
  for (std::size_t step = 0; candidates.empty() && step < cases.size(); ++step) {
    const std::size_t n = (cases.size() / 2 + step) % cases.size();
    if (is_named(cases[n]))
      add(make_problem(operation_, cases[n].operands, cases[n].options), n, variant, candidates);
  }
  if (candidates.empty()) return {};

  std::vector<Config>& pinned =
      shared_.pinned[kernels_of(variant, types, context_.device().backend)];
  pin_configs(candidates, pinned, [&](const Candidate& candidate, const Config& config) {
    return !selection::refusal(candidate.problem, variant, config, context_.device());
  });
  for (const Candidate& candidate : sample(variant, types, cases, std::move(candidates)))
    subjects[candidate.number].push_back({&variant, candidate.config});
  return {pinned.front()};
}

// What the variant says against the case, or nothing where it is a candidate now.
Refusal Plan::add(Problem problem, std::size_t number, const Variant& variant,
                  std::vector<Candidate>& candidates) const {
  if (options_.config) {
    if (Refusal no = selection::refusal(problem, variant, *options_.config, context_.device()))
      return no;
  }
  std::vector<Config> configs = accepted(problem, variant);
  if (configs.empty())
    return selection::refusal(problem, variant, context_.device()).value_or("no configuration");
  Config own = configs.front();
  candidates.push_back({.number = number,
                        .problem = std::move(problem),
                        .configs = std::move(configs),
                        .config = std::move(own)});
  return {};
}

// Of the other cases those that bring what no candidate has: large values, or the functions that
// are dealt to this storage type.
void Plan::add_missing(const Variant& variant, const std::optional<Share>& share,
                       const std::vector<Case>& cases, const std::vector<std::size_t>& others,
                       std::vector<Candidate>& candidates) const {
  Built met = planned_;
  const auto names = [&](const Candidate& candidate) {
    return runtime::program_names(candidate.problem, variant, candidate.config, context_.device());
  };
  const auto meet = [&](const Candidate& candidate) {
    for (const runtime::ProgramName& program : names(candidate)) met.add(program);
  };
  std::ranges::for_each(candidates, meet);
  for (const std::size_t n : others) {
    if (!add(make_problem(operation_, cases[n].operands, cases[n].options), n, variant,
             candidates)) {
      if (is_missing(names(candidates.back()), share, met)) {
        meet(candidates.back());
      } else {
        candidates.pop_back();
      }
    }
  }
}

std::vector<Config> Plan::take_all(const Variant& variant, const std::vector<Candidate>& candidates,
                                   std::vector<std::vector<Subject>>& subjects) const {
  std::vector<Config> tried;
  for (const Candidate& candidate : candidates) {
    subjects[candidate.number].push_back({&variant, candidate.config});
    for (const Config& config : candidate.configs) {
      if (tried.size() < options_.max_configs && std::ranges::find(tried, config) == tried.end()) {
        tried.push_back(config);
      }
    }
  }
  return tried;
}

// Without cases that need programs which are not worth it, and, but for a fifth, those whose
// programs another operation has run.
std::vector<Candidate> Plan::sample(const Variant& variant, const StorageTypes& types,
                                    const std::vector<Case>& cases,
                                    std::vector<Candidate> candidates) {
  std::vector<Programs> needs;
  std::ranges::transform(candidates, std::back_inserter(needs), [&](const Candidate& candidate) {
    return runtime::program_names(candidate.problem, variant, candidate.config, context_.device());
  });
  const bool first_types = types == types_of(variant).front();
  const bool made_for_it =
      context_.device().backend != Backend::kOpenCL || !variant.needs.kinds.empty();
  const std::size_t more = !first_types ? 0 : made_for_it ? kMore : kMoreOfGpus;
  // Combinations of types that are not told apart by DTYPE are read in ways of their own.
  const bool are_run_elsewhere = std::ranges::all_of(
      needs, [&](const Programs& programs) { return has_kernels(earlier_, programs); });
  const bool own_way =
      !operation_.types.empty() &&
      (have_storage_axis(needs)
           ? made_for_it && brings_codes(variant, candidates.front().problem, needs)
           : !are_run_elsewhere);
  const std::optional<Share> share = share_of(variant, types);
  // Each operation in one of them, which others have made its functions for if there is such a
  // one.
  const bool last_chance = share && !are_others_run_ &&
                           (share->number + 1 == share->count ||
                            std::ranges::all_of(needs, [&](const Programs& programs) {
                              return has_types(earlier_, programs);
                            }));
  const bool is_gotten = std::ranges::any_of(candidates, [&](const Candidate& candidate) {
    return is_chosen(variant, candidate.problem, cases[candidate.number]);
  });
  const std::vector<bool> kept =
      sample_of(needs,
                {.share = share,
                 .more = more,
                 .one_at_least = first_types || own_way || (last_chance && is_gotten)},
                planned_);
  std::vector<Candidate> left;
  std::optional<Candidate> repetition;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate& candidate = candidates[i];
    if (!kept[i]) {
      skip_(variant, candidate.problem.types, cases[candidate.number],
            "it needs kernels for itself: a full check takes it");
    } else if (has_programs(earlier_, needs[i]) && candidate.number % 5 != 2) {
      if (!repetition) repetition = std::move(candidate);
    } else {
      left.push_back(std::move(candidate));
    }
  }
  if (left.empty() && repetition) left.push_back(std::move(*repetition));
  are_others_run_ = are_others_run_ || (!first_types && !left.empty());
  return left;
}

// Of the variant's storage types behind the first; nothing for that one.
std::optional<Share> Plan::share_of(const Variant& variant, const StorageTypes& types) const {
  // Of "f16_i8" what stands first, by which kernels are compiled.
  const auto storage = [](const StorageTypes& one) {
    const std::string name = one.name();
    return name.substr(0, name.find('_'));
  };
  std::vector<std::string> all;
  for (const StorageTypes& one : types_of(variant)) {
    if (std::ranges::find(all, storage(one)) == all.end()) all.push_back(storage(one));
  }
  const auto number =
      static_cast<std::size_t>(std::ranges::find(all, storage(types)) - all.begin());
  if (number == 0) return {};
  return Share{.number = number - 1, .count = all.size() - 1};
}

Programs Plan::programs_of(const Case& shape, const Variant& variant, const Config& config) const {
  const Problem problem = make_problem(operation_, shape.operands, shape.options);
  if (selection::refusal(problem, variant, config, context_.device())) return {};
  return runtime::program_names(problem, variant, config, context_.device());
}

// Codes beside storage types are dealt to the operations and variants that share functions, two
// to each while there are some that no function has met; beside f32 each kernel meets some.
bool Plan::brings_codes(const Variant& variant, const Problem& problem,
                        const std::vector<Programs>& needs) {
  const bool new_codes = std::ranges::any_of(needs, [&](const Programs& programs) {
    return conformance::brings_codes(programs, planned_);
  });
  if (new_codes) return ++codes_of_[variant.name] <= 2;
  return problem.dtype == DType::kF32 && std::ranges::none_of(needs, [&](const Programs& programs) {
           return has_kernels(planned_, programs);
         });
}

void Plan::ask_precision(Case& shape) const {
  if (!options_.precision) return;
  shape.options.insert_or_assign("precision", std::string(to_string(*options_.precision)));
}

// Whether it is what this call gets here where nothing has been tuned.
bool Plan::is_chosen(const Variant& variant, const Problem& problem, const Case& shape) {
  const auto [known, is_new] = chosen_.try_emplace({problem.types.name(), shape.name});
  if (is_new) {
    try {
      const Executor untuned = Executor(context_).with_tiers({Tier::kShipped, Tier::kHeuristics});
      known->second = untuned.explain(problem).execution.choice.variant;
    } catch (const Unsupported&) {  // nothing is chosen
    }
  }
  return known->second == variant.name;
}

bool Plan::is_named(const Case& shape) const {
  return options_.only.empty() || shape.name.find(options_.only) != std::string::npos;
}

std::vector<Config> Plan::accepted(const Problem& problem, const Variant& variant) const {
  if (options_.config) return {*options_.config};  // add() has asked for it
  std::vector<Config> configs = variant.space(problem, context_.device());
  std::erase_if(configs, [&](const Config& config) {
    return selection::refusal(problem, variant, config, context_.device()).has_value();
  });
  return configs;
}

}  // namespace tessera::conformance
