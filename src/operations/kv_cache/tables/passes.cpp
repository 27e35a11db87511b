// SPDX-License-Identifier: Apache-2.0
#include "operations/kv_cache/passes.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

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

std::vector<std::byte> places_bytes_of_arguments(const Problem& problem, const Config& /*config*/) {
  return argument_bytes(places_arguments(problem));
}

}  // namespace

std::vector<Pass> places_passes() {
  Pass places = table_pass("places", "places", "cache_places");
  places.bindings = {kSlotMapping, kBlockTables, kKvLens, kQueryStartLoc,
                     kNumSeqs,     kScratch,     kErrors};
  places.errors_at = offsetof(abi::CachePlacesArgs, errors);
  // An item for each token and for each offset.
  places.groups = [](const Problem& problem, const Config&) {
    const auto& call = problem.as<AppendProblem>();
    return Dim3{
        ceil_div(std::max(places_length(problem), call.mapped ? 0 : call.sequences + 1), kItems)};
  };
  places.args = places_bytes_of_arguments;
  Pass last = table_pass("last", "last", "cache_last");
  last.bindings = {kScratch};
  last.groups = [](const Problem& problem, const Config&) {
    return Dim3{ceil_div(places_length(problem), kItems)};
  };
  last.args = places_bytes_of_arguments;
  return {std::move(places), std::move(last)};
}

std::uint64_t places_bytes(const Problem& problem, const Config& /*config*/) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(16, 8 * places_length(problem)));
}

Pass pairs_pass() {
  Pass pass = table_pass("pairs", "pairs", "cache_pairs");
  pass.bindings = {kSourcePages, kTargetPages, kScratch, kErrors};
  pass.errors_at = offsetof(abi::CachePairsArgs, errors);
  pass.groups = [](const Problem& problem, const Config&) {
    return Dim3{ceil_div(problem.as<CopyProblem>().pairs, kItems)};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(pairs_arguments(problem));
  };
  return pass;
}

}  // namespace tessera::operations::kv_cache
