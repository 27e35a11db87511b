// SPDX-License-Identifier: Apache-2.0
#include "conformance/ledger.hpp"

#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <utility>

namespace tessera::testing {
namespace {

constexpr std::size_t kOpenCLBudget = 24, kVulkanBudget = 16;

// Families that get more, and why.
const std::map<std::pair<std::string, Backend>, std::size_t>& larger_budgets() {
  static const std::map<std::pair<std::string, Backend>, std::size_t> budgets{
      // Three dozen variants of seven operations: CPUs have three ways of their own to compute the
      // forward pass and run two of GPUs, with two bodies each (plain calls and all policies), keys
      // in pages, codes of four types, and classes of head dims compiled in; the backward pass
      // takes up to five kernels, and CPUs have two ways of it. Seven and five are kv_cache's, by
      // which ragged_page_attention_v3 writes.
      {{"attention", Backend::kOpenCL}, 132},
      {{"attention", Backend::kVulkan}, 62},
      // Four operations in two variants, with the five kinds of sequences compiled in. The kernels
      // are small.
      {{"pooling", Backend::kOpenCL}, 30},
      // Ten operations: plain products in mixed types, six of them in storage, those of groups,
      // whose rows or terms are ragged, and with blocks of a sparse matrix; CPUs multiply words of
      // bf16 and i8, too, and have kernels for few rows and for few rows beside a row-major factor,
      // each with its packing. One program takes two seconds at most. Two through Vulkan are those
      // of quantise, which makes codes of outputs and quantised has compiled, too.
      // Eight and four are those of 8-bit types in grouped products, transposed too.
      {{"matmul", Backend::kOpenCL}, 60},
      {{"matmul", Backend::kVulkan}, 31},
      // Eleven operations of thirteen kernels: delta rules have three of their own for each way.
      // One, common/boundaries, kv_cache has compiled, too.
      {{"recurrence", Backend::kOpenCL}, 26},
      {{"recurrence", Backend::kVulkan}, 24},
      // Six operations of three kinds of cells, which are compiled in, and projections; about
      // eleven programs are those of the products that they call.
      {{"cells", Backend::kOpenCL}, 29},
      {{"cells", Backend::kVulkan}, 25},
      // Seven operations of seventeen small kernels; alignment and which losses are wanted are
      // compiled in. Fifteen and thirteen programs are those of grouped products, which moe_ffn
      // calls and matmul has compiled, too.
      {{"moe", Backend::kOpenCL}, 41},
      {{"moe", Backend::kVulkan}, 36},
      // Four operations; the format of weights, rows and types of input are compiled in; gradients
      // and products of groups call matmul and grouped_matmul, whose ten and seven kernels count
      // again.
      {{"quantised", Backend::kOpenCL}, 29},
      {{"quantised", Backend::kVulkan}, 25},
  };
  return budgets;
}

}  // namespace

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
