// SPDX-License-Identifier: Apache-2.0
#include "selection/cache/overlay.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "base/system/environment.hpp"
#include "base/system/out_of_memory.hpp"
#include "base/system/thread_state.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

// A scope is taken away by its owner's address and not from the top: an object that dies out of
// order, or on another thread, takes nobody else's scope with it.
template <class T>
struct Scope {
  const void* owner;
  T value;
};

// Null at the end of the thread, when no scope is left.
template <class T>
std::vector<Scope<T>>* scopes() {
  return of_this_thread<std::vector<Scope<T>>>();
}

template <class T>
void enter(const void* owner, T value) {
  if (auto* const stack = scopes<T>()) stack->push_back({owner, std::move(value)});
}

using Entries = std::vector<OverlayEntry>;

template <class T>
void leave(const void* owner) {
  if (auto* const stack = scopes<T>())
    std::erase_if(*stack, [&](const Scope<T>& scope) { return scope.owner == owner; });
}

// Within one scope an entry for this very key goes before one for every key.
const OverlayEntry* find_in(const Entries& entries, const Problem& problem) {
  const OverlayEntry* every = nullptr;
  for (const OverlayEntry& entry : entries) {
    if (entry.operation != problem.operation->name) continue;
    if (entry.key == problem.key) return &entry;
    if (entry.key == "*" && every == nullptr) every = &entry;
  }
  return every;
}

}  // namespace

std::string_view to_string(Tier tier) {
  switch (tier) {
    case Tier::kOverride:
      return "override";
    case Tier::kOverlay:
      return "overlay";
    case Tier::kMemory:
      return "memory";
    case Tier::kPersistent:
      return "persistent";
    case Tier::kShipped:
      return "shipped";
    case Tier::kAutotune:
      return "autotune";
    case Tier::kHeuristics:
      return "heuristics";
  }
  return "unknown";
}

ScopedOverlay::ScopedOverlay(std::vector<OverlayEntry> entries) try {
  for (const OverlayEntry& entry : entries) {
    if (entry.operation.empty()) throw InvalidArgument("overlay entry: it names no operation");
    if (entry.variant.empty()) {
      throw InvalidArgument("overlay entry for " + entry.operation + ": it names no variant");
    }
  }
  enter<Entries>(this, std::move(entries));
} catch (...) {
  rethrow_as_error();
}

ScopedOverlay::~ScopedOverlay() { leave<Entries>(this); }

ScopedPolicy::ScopedPolicy(Policy policy) try { enter<Policy>(this, policy); } catch (...) {
  rethrow_as_error();
}

ScopedPolicy::~ScopedPolicy() { leave<Policy>(this); }

ScopedPrecision::ScopedPrecision(Precision precision) try {
  enter<Precision>(this, precision);
} catch (...) {
  rethrow_as_error();
}

ScopedPrecision::~ScopedPrecision() { leave<Precision>(this); }

Policy current_policy() try {
  if (const auto policy = selection::scoped_policy()) return *policy;
  return {.autotune = environment().autotune};
} catch (...) {
  rethrow_as_error();
}

namespace selection {

bool overlays_active() {
  const auto* const stack = scopes<Entries>();
  return stack != nullptr && !stack->empty();
}

std::optional<OverlayEntry> find_overlay(const Problem& problem) {
  if (!overlays_active()) return std::nullopt;
  const auto& stack = *scopes<Entries>();
  for (std::size_t depth = stack.size(); depth-- > 0;) {
    if (const OverlayEntry* entry = find_in(stack[depth].value, problem)) return *entry;
  }
  return std::nullopt;
}

namespace {

template <class T>
std::optional<T> innermost() {
  const auto* const stack = scopes<T>();
  if (stack == nullptr || stack->empty()) return std::nullopt;
  return stack->back().value;
}

}  // namespace

std::optional<Policy> scoped_policy() { return innermost<Policy>(); }
std::optional<Precision> scoped_precision() { return innermost<Precision>(); }

}  // namespace selection
}  // namespace tessera
