// SPDX-License-Identifier: Apache-2.0
// What a check of an operation runs: its cases, and for each the variants and their configurations.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/conformance.hpp"
#include "conformance/sample.hpp"
#include "tessera/context.hpp"

namespace tessera::conformance {

// One kernel to be run on a case.
struct Subject {
  const Variant* variant;
  Config config;
};

class Plan {
 public:
  using Skip =
      std::function<void(const Variant&, const StorageTypes&, const Case&, const std::string& why)>;

  // `skip` hears of what is left out although its case was asked for. What `shared` has built is
  // what operations before this one used.
  Plan(const Context& context, const Operation& operation, const CheckOptions& options,
       Shared& shared, Skip skip);

  // Of all variants that are asked for.
  std::vector<StorageTypes> all_types() const;
  // Once for each of all_types(), in their order: what was planned before counts. Cases outside,
  // variants inside, so that what a case takes from the reference is computed once.
  std::vector<std::pair<Case, std::vector<Subject>>> cases(const StorageTypes& types);

 private:
  std::vector<StorageTypes> types_of(const Variant& variant) const;
  bool is_asked_for(const Variant& variant) const;
  std::vector<Case> edges_of(const Variant& variant, const Config& config,
                             const StorageTypes& types);
  std::vector<Config> choose(const Variant& variant, const StorageTypes& types,
                             const std::vector<Case>& cases,
                             std::vector<std::vector<Subject>>& subjects);
  Refusal add(Problem problem, std::size_t number, const Variant& variant,
              std::vector<Candidate>& candidates) const;
  void add_missing(const Variant& variant, const std::optional<Share>& share,
                   const std::vector<Case>& cases, const std::vector<std::size_t>& others,
                   std::vector<Candidate>& candidates) const;
  std::vector<Config> take_all(const Variant& variant, const std::vector<Candidate>& candidates,
                               std::vector<std::vector<Subject>>& subjects) const;
  std::vector<Candidate> sample(const Variant& variant, const StorageTypes& types,
                                const std::vector<Case>& cases, std::vector<Candidate> candidates);
  std::optional<Share> share_of(const Variant& variant, const StorageTypes& types) const;
  std::string kernels_of(const Variant& variant, const StorageTypes& types) const;
  Programs programs_of(const Case& shape, const Variant& variant, const Config& config) const;
  bool brings_codes(const Variant& variant, const Problem& problem,
                    const std::vector<Programs>& needs);
  void ask_precision(Case& shape) const;
  bool is_chosen(const Variant& variant, const Problem& problem, const Case& shape);
  bool is_named(const Case& shape) const;
  std::vector<Config> accepted(const Problem& problem, const Variant& variant) const;

  const Context& context_;
  const Operation& operation_;
  const CheckOptions& options_;
  Shared& shared_;
  Skip skip_;
  Built earlier_;                        // what operations before this one used
  Built planned_;                        // with what this one will use
  bool are_others_run_ = false;          // storage types behind a variant's first
  std::map<std::string, int> codes_of_;  // combinations with new codes, by variant
  std::map<std::pair<std::string, std::string>, std::string> chosen_;  // the variant, by case
};

}  // namespace tessera::conformance
