// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "operations/norms/problem.hpp"

namespace tessera::operations::norms {
namespace {

using Pairs = std::vector<std::pair<std::string, DType>>;

}  // namespace

const std::vector<StorageTypes>& norm_types() {
  static const auto* const types = [] {
    auto* const all = new std::vector<StorageTypes>;
    for (const bool quantised : {false, true}) {
      for (const DType input : {DType::kF32, DType::kF16, DType::kBF16}) {
        const std::string name(to_string(input));
        if (!quantised) all->emplace_back(name, Pairs{{"input", input}, {"output", input}});
        for (const DType output : {DType::kI8, DType::kE4M3FN, DType::kE5M2}) {
          if (!quantised) break;
          all->emplace_back(name + "_" + std::string(to_string(output)),
                            Pairs{{"input", input}, {"output", output}});
        }
      }
    }
    return all;
  }();
  return *types;
}

bool is_quantised(DType output) { return bits_of(output) == 8; }

double largest_code(DType output) {
  return output == DType::kI8 ? 127 : output == DType::kE4M3FN ? 448 : 57344;
}

std::vector<Way> norm_ways(bool backward) {
  std::vector<Way> ways{cpu_way(backward), rows_way(backward)};
  if (!backward) {
    ways.push_back(quantised_cpu_way());
    ways.push_back(quantised_way());
  }
  return ways;
}

}  // namespace tessera::operations::norms
