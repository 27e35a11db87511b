// SPDX-License-Identifier: Apache-2.0
// What a room that knows one way to compute hands to its family, and lists of records.
#pragma once

#include <concepts>
#include <utility>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::operations {

// A variant, and the rule by which it is taken untuned; the rule's `variant` is filled in here.
struct Way {
  Variant variant;
  Rule rule;
};

// A list of records that are made for it. Braces would copy them, and the file would have the code
// for copies of all that they hold.
void add(std::vector<Operation>& list, Operation&& item);
void add(std::vector<Pass>& list, Pass&& item);
void add(std::vector<Way>& list, Way&& item);
template <class Item, std::same_as<Item>... Others>
std::vector<Item> list_of(Item&& item, Others&&... others) {
  std::vector<Item> list;
  add(list, std::move(item));
  (add(list, std::move(others)), ...);
  return list;
}

// Of ways in the order in which their rules are asked.
void add_ways(Operation& operation, std::vector<Way> ways);

}  // namespace tessera::operations
