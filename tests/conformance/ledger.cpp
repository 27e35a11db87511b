// SPDX-License-Identifier: Apache-2.0
#include "conformance/ledger.hpp"

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "support/family.hpp"

namespace tessera::testing {
namespace {

constexpr std::size_t kOpenCLBudget = 24, kVulkanBudget = 16;

// Families that get more, and why.
const std::map<std::pair<std::string, Backend>, std::size_t>& larger_budgets() {
  static const std::map<std::pair<std::string, Backend>, std::size_t> budgets{
      // Three dozen variants of seven operations: CPUs have three ways of their own to compute the
      // forward pass and run two of GPUs, three through Vulkan, with two bodies each (plain calls
      // and all policies), keys in pages or listed, codes of four types, and classes of head dims
      // compiled in; the backward pass takes up to five kernels, and CPUs have two ways of it, with
      // AVX512_BF16 a third. Tables of pages are checked with a distribution of sequences, too.
      {{"attention", Backend::kOpenCL}, 110},
      {{"attention", Backend::kVulkan}, 72},
      // Ten operations: plain products in mixed types, six of them in storage, those of groups,
      // whose rows or terms are ragged, and with blocks of a sparse matrix; CPUs multiply words of
      // bf16 and i8, too, and have kernels for few rows and for few rows beside a row-major factor,
      // each with its packing. One program takes two seconds at most. Six and three are those of
      // 8-bit types in grouped products, not transposed: a full check takes these.
      {{"matmul", Backend::kOpenCL}, 52},
      {{"matmul", Backend::kVulkan}, 30},
      // Eleven operations of thirteen kernels, with key dims up to 128 and beyond: delta rules have
      // three of their own for each way, spans of sequences take two, one token of states has a
      // kernel of its own, and processors have three classes of key dims forward and by chunks.
      {{"recurrence", Backend::kOpenCL}, 26},
      {{"recurrence", Backend::kVulkan}, 18},
      // Six operations; few tokens are looked up and copied in one launch, too, and types of codes
      // are compiled in. CPUs take rows of codes by kernels of their own.
      {{"kv_cache", Backend::kOpenCL}, 26},
      {{"kv_cache", Backend::kVulkan}, 20},
      // CPUs have a kernel of their own for outputs in 8 bits, too.
      {{"norms", Backend::kOpenCL}, 25},
      // Four operations of eleven kernels, and four of processors. Those that ask for several
      // tokens at once know the storage type of rows when they are built.
      {{"state_space", Backend::kOpenCL}, 32},
      {{"state_space", Backend::kVulkan}, 22},
      // Seven operations of seventeen small kernels; alignment, rows that are whole words and which
      // losses are wanted are compiled in.
      {{"moe", Backend::kOpenCL}, 39},
      {{"moe", Backend::kVulkan}, 32},
      // Four operations; the format of weights, rows and types of input are compiled in. Few rows
      // of plain layouts have a kernel of their own, and so have blocks of codes on CPUs.
      {{"quantised", Backend::kOpenCL}, 25},
  };
  return budgets;
}

}  // namespace

std::size_t count_programs(const Context& context, const std::string& family,
                           const conformance::Built& built) {
  std::map<std::string, std::set<std::string>> by_folder;
  for (const std::string& key : built.programs) by_folder[key.substr(0, key.find('/'))].insert(key);
  std::size_t count = 0;
  for (const auto& [folder, programs] : by_folder) {
    conformance::Shared owner;
    for (const Operation* operation : all_operations()) {
      if (folder == family || family_of(*operation) != folder) continue;
      conformance::check(context, *operation, {.quick = true, .list = true, .shared = &owner},
                         [](const conformance::CheckResult&) {});
    }
    for (const std::string& key : programs) count += owner.built.programs.contains(key) ? 0 : 1;
  }
  return count;
}

std::size_t budget_of(const std::string& family, Backend backend) {
  const auto larger = larger_budgets().find({family, backend});
  if (larger != larger_budgets().end()) return larger->second;
  return backend == Backend::kVulkan ? kVulkanBudget : kOpenCLBudget;
}

std::string to_string(const Ledger& ledger, bool with_budget) {
  std::string text =
      ledger.family + " on " + std::string(tessera::to_string(ledger.backend)) + ": ";
  if (ledger.backend != Backend::kHost) {
    text += std::to_string(ledger.programs) + " programs";
    if (with_budget)
      text += " (of " + std::to_string(budget_of(ledger.family, ledger.backend)) + ")";
    text += ", ";
  }
  char seconds[160];
  std::snprintf(seconds, sizeof seconds,
                "compilers %.1f s, oracle %.1f s, launches %.1f s, data and comparison %.1f s",
                ledger.spent.compilers, ledger.spent.oracle, ledger.spent.launches,
                ledger.spent.rest);
  return text + seconds;
}

void append_line(const std::string& file, const std::string& line) {
  std::ofstream stream(file, std::ios::app);
  stream << line + "\n" << std::flush;
  if (!stream) throw std::runtime_error(file + " cannot be written");
}

}  // namespace tessera::testing
