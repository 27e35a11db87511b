// SPDX-License-Identifier: Apache-2.0
#include "operations/common/ways.hpp"

#include <utility>

namespace tessera::operations {

void add(std::vector<Operation>& list, Operation&& item) { list.push_back(std::move(item)); }
void add(std::vector<Pass>& list, Pass&& item) { list.push_back(std::move(item)); }
void add(std::vector<Way>& list, Way&& item) { list.push_back(std::move(item)); }

void add_ways(Operation& operation, std::vector<Way> ways) {
  for (Way& way : ways) {
    way.rule.variant = way.variant.name;
    operation.rules.push_back(std::move(way.rule));
    operation.variants.push_back(std::move(way.variant));
  }
}

}  // namespace tessera::operations
