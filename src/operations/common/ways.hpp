// SPDX-License-Identifier: Apache-2.0
// What a room that knows one way to compute hands to its family.
#pragma once

#include <vector>

#include "tessera/record.hpp"

namespace tessera::operations {

// A variant, and the rule by which it is taken untuned; the rule's `variant` is filled in here.
struct Way {
  Variant variant;
  Rule rule;
};

// Of ways in the order in which their rules are asked.
void add_ways(Operation& operation, std::vector<Way> ways);

}  // namespace tessera::operations
