// SPDX-License-Identifier: Apache-2.0
// Where experts are kept: on the host.
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/moe.hpp"

namespace tessera {
namespace {

using Numbers = std::vector<std::int64_t>;

void require(bool condition, const std::string& sentence) {
  if (!condition) throw InvalidArgument("expert_placement: " + sentence);
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// `replicas` replicas of items, and how many each has: one of each, then one by one to the largest
// weight for each replica.
struct Replicas {
  Numbers item{};
  Numbers counts{};
};

Replicas replicate(const std::vector<double>& weights, std::int64_t replicas) {
  Replicas result{.item = Numbers(weights.size()), .counts = Numbers(weights.size(), 1)};
  std::iota(result.item.begin(), result.item.end(), std::int64_t{0});
  while (static_cast<std::int64_t>(result.item.size()) < replicas) {
    std::size_t most = 0;
    for (std::size_t i = 1; i < weights.size(); ++i) {
      if (weights[i] / static_cast<double>(result.counts[i]) >
          weights[most] / static_cast<double>(result.counts[most]))
        most = i;
    }
    result.item.push_back(static_cast<std::int64_t>(most));
    result.counts[most] += 1;
  }
  return result;
}

// The experts of one node to its devices, as physical experts in order.
Numbers place_on_devices(const std::vector<double>& load, const Numbers& experts,
                         std::int64_t replicas, std::int64_t devices) {
  std::vector<double> weights;
  for (const std::int64_t expert : experts) weights.push_back(load[at(expert)]);
  const Replicas all = replicate(weights, replicas);
  std::vector<double> shares;
  for (const std::int64_t item : all.item)
    shares.push_back(weights[at(item)] / static_cast<double>(all.counts[at(item)]));
  const Packing packing = balanced_packing(shares, devices);
  Numbers physical(all.item.size());
  const std::int64_t each = replicas / devices;
  for (std::size_t i = 0; i < all.item.size(); ++i)
    physical[at(packing.pack[i] * each + packing.rank[i])] = experts[at(all.item[i])];
  return physical;
}

}  // namespace

Packing balanced_packing(const std::vector<double>& weights, std::int64_t packs) try {
  const auto items = static_cast<std::int64_t>(weights.size());
  if (packs < 1 || items % packs != 0)
    throw InvalidArgument("balanced_packing: " + std::to_string(items) + " items do not go into " +
                          std::to_string(packs) + " equal packs");
  const std::int64_t room = items / packs;
  Packing result{.pack = Numbers(weights.size()), .rank = Numbers(weights.size(), 0)};
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (room == 1) {  // as they are
    std::iota(result.pack.begin(), result.pack.end(), std::int64_t{0});
    return result;
  }
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  std::vector<double> sums(at(packs), 0);
  Numbers counts(at(packs), 0);
  for (const std::size_t item : order) {
    std::size_t lightest = sums.size();
    for (std::size_t pack = 0; pack < sums.size(); ++pack) {
      if (counts[pack] == room) continue;
      if (lightest == sums.size() || sums[pack] < sums[lightest]) lightest = pack;
    }
    result.pack[item] = static_cast<std::int64_t>(lightest);
    result.rank[item] = counts[lightest]++;
    sums[lightest] += weights[item];
  }
  return result;
} catch (...) {
  rethrow_as_error();
}

ExpertPlacement expert_placement(const std::vector<double>& load,
                                 const PlacementOptions& options) try {
  const auto experts = static_cast<std::int64_t>(load.size());
  const std::int64_t nodes = options.hierarchical ? options.nodes : 1;
  const std::int64_t groups = options.hierarchical ? options.groups : 1;
  require(nodes >= 1 && groups >= 1 && options.gpus >= 1, "nodes, groups and gpus are at least 1");
  require(experts >= 1 && options.replicas >= experts, std::to_string(options.replicas) +
                                                           " replicas are not enough for " +
                                                           std::to_string(experts) + " experts");
  require(options.replicas % options.gpus == 0, "replicas are no multiple of gpus");
  require(options.gpus % nodes == 0, "gpus are no multiple of nodes");
  require(groups % nodes == 0, "groups are no multiple of nodes");
  require(experts % groups == 0, "experts are no multiple of groups");
  const std::int64_t size = experts / groups;
  std::vector<double> weights(at(groups), 0);
  for (std::int64_t expert = 0; expert < experts; ++expert)
    weights[at(expert / size)] += load[at(expert)];
  const Packing packing = balanced_packing(weights, nodes);
  std::vector<Numbers> of_nodes(at(nodes), Numbers(at(experts / nodes)));
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    const std::size_t group = at(expert / size);
    of_nodes[at(packing.pack[group])][at(packing.rank[group] * size + expert % size)] = expert;
  }
  ExpertPlacement result{.physical_to_logical = {},
                         .logical_to_physical = std::vector<Numbers>(load.size()),
                         .counts = Numbers(load.size(), 0)};
  for (const Numbers& node : of_nodes) {
    for (const std::int64_t expert :
         place_on_devices(load, node, options.replicas / nodes, options.gpus / nodes)) {
      result.logical_to_physical[at(expert)].push_back(
          static_cast<std::int64_t>(result.physical_to_logical.size()));
      result.physical_to_logical.push_back(expert);
      result.counts[at(expert)] += 1;
    }
  }
  return result;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
