// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "base/system/out_of_memory.hpp"
#include "kernel/builtin.hpp"
#include "kernel/precision.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera {
namespace {

constexpr std::string_view kReferenceVariant = "reference";

void require(bool condition, const std::string& record, const std::string& sentence) {
  if (!condition) throw InvalidArgument(record + ": " + sentence);
}

template <class Items, class Name>
bool are_unique(const Items& items, Name name) {
  std::set<std::string> names;
  return std::ranges::all_of(
      items, [&](const auto& item) { return names.insert(std::invoke(name, item)).second; });
}

bool has_operand(const Operation& operation, const std::string& name) {
  return std::ranges::count(operation.operands, name, &Operand::name) != 0;
}

bool is_identifier(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::ranges::all_of(name, allowed);
}

void check_variant(const Operation& operation, const Variant& variant) {
  const std::string who = operation.name + "." + variant.name;
  require(is_identifier(variant.name), who,
          "a variant's name has letters, digits and underscores only");
  require(!variant.passes.empty() || variant.steps, who,
          "a variant needs at least one pass, or steps that call other operations");
  require(static_cast<bool>(variant.space), who, "a variant needs a configuration space");
  std::set<std::uint32_t> ids;
  for (const Tunable& tunable : variant.tunables) {
    require(tunable.id >= 3, who,
            tunable.name + " has constant id " + std::to_string(tunable.id) +
                "; 0 to 2 are the work-group size");
    require(ids.insert(tunable.id).second, who,
            "constant id " + std::to_string(tunable.id) + " is used twice");
  }
  require(!variant.steps || are_unique(variant.passes, &Pass::name), who,
          "two passes have one name, and steps go by their names");
  for (const std::string& types : variant.types) {
    require(std::ranges::count(operation.types, types, &StorageTypes::name) != 0, who,
            "the operation has no combination of dtypes '" + types + "'");
  }
  for (const Pass& pass : variant.passes) {
    require(!pass.opencl.empty() || !pass.vulkan.empty() || pass.host, who,
            "pass '" + pass.name + "' has no source for any backend");
    require(pass.host || pass.groups, who, "pass '" + pass.name + "' does not say its work-groups");
    for (const std::size_t slot : pass.bindings) {
      require(slot == kScratch || slot == kNoOperand || slot == kErrors ||
                  slot < operation.operands.size(),
              who, "pass '" + pass.name + "' binds an operand that the operation does not have");
    }
    const bool raises = std::ranges::count(pass.bindings, kErrors) != 0;
    require(!raises || !operation.errors.empty(), who,
            "pass '" + pass.name + "' binds kErrors, and the operation has no errors");
    require(raises == pass.errors_at.has_value(), who,
            "pass '" + pass.name +
                "' needs both, kErrors among its bindings and errors_at, or neither");
  }
}

void check_errors(const Operation& operation) {
  const std::string& who = operation.name;
  require(operation.errors.empty() || operation.raises, who,
          "an operation with errors needs raises(), which says when kernels raise them");
  for (const ErrorKind& error : operation.errors) {
    require(has_operand(operation, error.operand), who,
            "the error '" + error.kind + "' is about an unknown operand '" + error.operand + "'");
  }
}

void check_types(const Operation& operation) {
  const std::string& who = operation.name;
  require(are_unique(operation.types, &StorageTypes::name), who,
          "two combinations of dtypes have one name");
  for (const StorageTypes& types : operation.types) {
    require(!types.operands().empty(), who,
            "the combination of dtypes '" + types.name() + "' names no operands");
    for (const auto& [operand, dtype] : types.operands()) {
      require(has_operand(operation, operand), who,
              "the combination of dtypes '" + types.name() + "' names an unknown operand '" +
                  operand + "'");
    }
  }
}

void check_operation(const Operation& operation) {
  const std::string& who = operation.name;
  require(is_identifier(operation.name), who,
          "an operation's name has letters, digits and underscores only");
  require(!operation.operands.empty(), who, "an operation needs operands");
  require(static_cast<bool>(operation.validate), who, "an operation needs validate()");
  require(static_cast<bool>(operation.reference), who, "an operation needs a reference");
  std::set<std::string> names;
  for (const Operand& operand : operation.operands) {
    require(names.insert(operand.name).second, who,
            "two operands are called '" + operand.name + "'");
  }
  for (const Operand& operand : operation.operands) {
    require(
        operand.stand_in.empty() || has_operand(operation, operand.stand_in), who,
        "'" + operand.name + "' has an unknown operand '" + operand.stand_in + "' as its stand-in");
  }
  check_errors(operation);
  check_types(operation);
  std::set<std::string> variants;
  for (const Variant& variant : operation.variants) {
    require(variants.insert(variant.name).second, who,
            "two variants are called '" + variant.name + "'");
    check_variant(operation, variant);
  }
  for (const Rule& rule : operation.rules) {
    require(variants.contains(rule.variant), who,
            "a rule names the unknown variant '" + rule.variant + "'");
  }
}

// The definition itself as a variant: what the host backend runs. Member by member: where memory
// ends within a nested braced list, GCC 12 destroys what is there twice.
Variant reference_variant(const Operation& operation) {
  Pass pass;
  pass.name = kReferenceVariant;
  pass.host = operation.reference;
  for (std::size_t slot = 0; slot < operation.operands.size(); ++slot)
    pass.bindings.push_back(slot);
  Variant variant;
  variant.name = kReferenceVariant;
  variant.idea = "the definition: slow, obvious, double precision";
  variant.needs.backends.push_back(Backend::kHost);
  variant.passes.push_back(std::move(pass));
  variant.space = [](const Problem&, const DeviceProfile&) {
    return std::vector<Config>{Config{}};
  };
  return variant;
}

// Records never change once they are visible: adding a variant publishes a new version of the
// operation and keeps the old one alive, since problems and cached plans point to it.
class Registry {
 public:
  static Registry& instance() {
    static auto* const registry = new Registry;  // never destroyed: calls may come at exit
    return *registry;
  }

  std::vector<const Operation*> all() {
    const std::lock_guard lock(mutex_);
    return current_;
  }

  const Operation* find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(current_, name, &Operation::name);
    return found == current_.end() ? nullptr : *found;
  }

  const Operation& add(Operation operation) {
    if (operation.find_variant(kReferenceVariant) == nullptr) {
      operation.variants.push_back(reference_variant(operation));
    }
    check_operation(operation);
    for (const OptionInfo& option : operation.options) {
      require(option.name != kernel::kPrecision, operation.name,
              "the option 'precision' is every operation's");
    }
    operation.options.push_back(kernel::precision_option());
    const std::lock_guard lock(mutex_);
    require(std::ranges::find(current_, operation.name, &Operation::name) == current_.end(),
            operation.name, "an operation of this name is registered already");
    current_.push_back(keep(std::move(operation)));
    return *current_.back();
  }

  void extend(std::string_view name, Variant variant, std::vector<Rule> rules) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(current_, name, &Operation::name);
    require(found != current_.end(), std::string(name), "no operation of this name is registered");
    Operation next = **found;
    next.variants.push_back(std::move(variant));
    // An application's rules speak about its own variant, so they come first.
    next.rules.insert(next.rules.begin(), rules.begin(), rules.end());
    check_operation(next);
    *found = keep(std::move(next));
  }

 private:
  Registry() {
    for (Operation& operation : kernel::builtin_operations()) add(std::move(operation));
  }

  const Operation* keep(Operation operation) {
    versions_.push_back(std::make_unique<const Operation>(std::move(operation)));
    return versions_.back().get();
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<const Operation>> versions_;
  std::vector<const Operation*> current_;
};

}  // namespace

std::size_t Operation::slot(std::string_view operand) const try {
  const auto found = std::ranges::find(operands, operand, &Operand::name);
  if (found != operands.end()) return static_cast<std::size_t>(found - operands.begin());
  std::string known;
  for (const Operand& candidate : operands) known += (known.empty() ? "" : ", ") + candidate.name;
  throw InvalidArgument(name + " has no operand '" + std::string(operand) + "'; it has " + known);
} catch (...) {
  rethrow_as_error();
}

const Variant* Operation::find_variant(std::string_view variant) const {
  const auto found = std::ranges::find(variants, variant, &Variant::name);
  return found == variants.end() ? nullptr : &*found;
}

std::vector<const Operation*> all_operations() try {
  return Registry::instance().all();
} catch (...) {
  rethrow_as_error();
}

const Operation& find_operation(std::string_view name) try {
  if (const Operation* found = Registry::instance().find(name)) return *found;
  std::string known;
  for (const Operation* operation : all_operations())
    known += (known.empty() ? "" : ", ") + operation->name;
  throw InvalidArgument("there is no operation '" + std::string(name) + "'; there are " + known);
} catch (...) {
  rethrow_as_error();
}

const Operation& register_operation(Operation operation) try {
  return Registry::instance().add(std::move(operation));
} catch (...) {
  rethrow_as_error();
}

void register_variant(std::string_view operation, Variant variant, std::vector<Rule> rules) try {
  Registry::instance().extend(operation, std::move(variant), std::move(rules));
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
