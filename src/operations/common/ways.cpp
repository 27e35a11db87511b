// SPDX-License-Identifier: Apache-2.0
#include "operations/common/ways.hpp"

#include <utility>

namespace tessera::operations {

void add_ways(Operation& operation, std::vector<Way> ways) {
  for (Way& way : ways) {
    way.rule.variant = way.variant.name;
    operation.rules.push_back(std::move(way.rule));
    operation.variants.push_back(std::move(way.variant));
  }
}

}  // namespace tessera::operations
