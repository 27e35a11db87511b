// SPDX-License-Identifier: Apache-2.0
#include "operations/kv_cache/passes.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "operations/common/boundaries.hpp"
#include "operations/common/launch.hpp"
#include "operations/kv_cache/launch.hpp"

namespace tessera::operations::kv_cache {
namespace {

constexpr std::uint32_t kItems = 64;

Pass table_pass(std::string name, const std::string& file, std::string entry) {
  Pass pass;
  pass.name = std::move(name);
  pass.opencl = {.file = "kv_cache/tables/" + file + ".cl", .entry = std::move(entry)};
  pass.vulkan = {.file = "kv_cache/tables/" + file + ".comp", .entry = "main"};
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{kItems}; };
  return pass;
}

// Of passes that find the last of several by one kernel.
constexpr std::pair<const char*, abi::u32> kRounds[] = {
    {"clear", CACHE_CLEARS}, {"claim", CACHE_CLAIMS}, {"list", CACHE_LISTS}};

Boundaries boundaries_of(const Problem& problem) {
  return {.tokens = problem.as<AppendProblem>().tokens,
          .result = static_cast<std::uint64_t>(boundaries_at(problem)),
          .outside = CACHE_BAD_START,
          .decreases = CACHE_BAD_START};
}

// A decode's few tokens: a launch takes longer than all that is done for them.
Pass few_pass() {
  Pass pass = table_pass("few", "few", "cache_few");
  pass.group_size = [](const Config&) { return Dim3{kFewItems}; };
  pass.bindings = {kSlotMapping,   kBlockTables, kKvLens, kNumSeqs,
                   kQueryStartLoc, kScratch,     kErrors};
  pass.errors_at = kFewErrorsAt;
  pass.groups = [](const Problem& problem, const Config&) {
    return are_few(problem) ? Dim3{1} : Dim3{0, 0, 0};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(few_arguments(problem));
  };
  return pass;
}

}  // namespace

bool are_few(const Problem& problem) {
  const auto& call = problem.as<AppendProblem>();
  return call.tokens > 0 && places_length(problem) <= std::int64_t{CACHE_FEW} &&
         (call.mapped || call.sequences <= std::int64_t{CACHE_FEW});
}

abi::CacheFewArgs few_arguments(const Problem& problem) {
  abi::CacheFewArgs args{
      .boundaries = boundaries_arguments(problem, kQueryStartLoc, kNumSeqs, boundaries_of(problem)),
      .places = places_arguments(problem, 0)};
  if (problem.as<AppendProblem>().mapped) args.places.sequences = 0;
  return args;
}

std::vector<Pass> places_passes() {
  Pass places = table_pass("places", "places", "cache_places");
  places.bindings = {kSlotMapping, kBlockTables, kKvLens, kNumSeqs, kScratch, kErrors};
  places.errors_at = offsetof(abi::CachePlacesArgs, errors);
  // An item for each token and for each sequence.
  places.groups = [](const Problem& problem, const Config&) {
    const auto& call = problem.as<AppendProblem>();
    return Dim3{
        ceil_div(std::max(places_length(problem), call.mapped ? 0 : call.sequences), kItems)};
  };
  places.args = [](const Problem& problem, const Config&) {
    return argument_bytes(places_arguments(problem, 0));
  };
  std::vector<Pass> passes =
      list_of(boundaries_pass(kQueryStartLoc, kNumSeqs,
                              [](const Problem& problem, const Config&) -> Boundaries {
                                return boundaries_of(problem);
                              }),
              std::move(places));
  for (const auto& [name, round] : kRounds) {
    Pass last = table_pass(name, "last", "cache_last");
    last.bindings = {kScratch};
    last.groups = [](const Problem& problem, const Config&) {
      return Dim3{ceil_div(places_length(problem), kItems)};
    };
    last.args = [round = round](const Problem& problem, const Config&) {
      return argument_bytes(places_arguments(problem, round));
    };
    passes.push_back(std::move(last));
  }
  for (Pass& pass : passes) {
    pass.groups = [groups = pass.groups](const Problem& problem, const Config& config) {
      return are_few(problem) ? Dim3{0, 0, 0} : groups(problem, config);
    };
  }
  passes.push_back(few_pass());
  return passes;
}

std::uint64_t places_bytes(const Problem& problem, const Config& /*config*/) {
  return std::max<std::uint64_t>(16, static_cast<std::uint64_t>(boundaries_at(problem)) +
                                         boundaries_bytes(problem, kQueryStartLoc));
}

std::vector<Pass> pairs_passes() {
  std::vector<Pass> passes;
  for (const auto& [name, round] : kRounds) {
    Pass pass = table_pass(name, "pairs", "cache_pairs");
    pass.bindings = {kSourcePages, kTargetPages, kScratch, kErrors};
    pass.errors_at = offsetof(abi::CachePairsArgs, errors);
    pass.groups = [](const Problem& problem, const Config&) {
      return Dim3{ceil_div(problem.as<CopyProblem>().pairs, kItems)};
    };
    pass.args = [round = round](const Problem& problem, const Config&) {
      return argument_bytes(pairs_arguments(problem, round));
    };
    passes.push_back(std::move(pass));
  }
  return passes;
}

}  // namespace tessera::operations::kv_cache
