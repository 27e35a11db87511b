// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul_core/launch.hpp"

#include <algorithm>

#include "operations/common/launch.hpp"
#include "operations/matmul_core/arguments.hpp"

namespace tessera::operations::matmul {
namespace {

constexpr std::uint32_t kCombineItems = 64;
constexpr std::int64_t kMostGroups = 65535;  // of a launch along an axis

}  // namespace

std::uint32_t filling_splits(const Product& product, std::uint64_t tiles, std::uint32_t wanted,
                             std::int64_t least) {
  constexpr std::uint64_t kMostSplits = 64;
  if (tiles == 0 || product.terms() == 0) return 1;
  const auto by_terms = static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, product.terms() / std::max<std::int64_t>(least, 1)));
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(wanted / tiles, 1, std::min(by_terms, kMostSplits)));
}

std::uint64_t partial_floats(const Product& product, std::uint32_t splits) {
  if (splits <= 1) return 0;
  return std::uint64_t{splits} * static_cast<std::uint64_t>(product.batches() * product.m) *
         static_cast<std::uint64_t>((product.n + 3) / 4 * 4);
}

std::uint64_t own_start(const Problem& problem) {
  constexpr std::uint64_t kAlignment = 32;  // 128 bytes
  return (scratch_of_stages(problem) + kAlignment - 1) / kAlignment * kAlignment;
}

std::uint64_t partial_start(const Problem& problem, std::uint64_t own_floats) {
  return own_start(problem) + own_floats;
}

std::uint32_t splits_of_sums(const Product& product) {
  constexpr std::int64_t kTerms = 64;
  constexpr std::int64_t kMost = 64;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(product.terms() / kTerms, 2, kMost));
}

bool multiplies(const Stage& stage) {
  return stage.step != Step::kGradBias && stage.step != Step::kGradAddend;
}

std::optional<Product> product_with_terms(const Problem& problem, const Stage& stage) {
  auto product = product_of(problem, stage);
  if (!product || product->is_empty() || product->terms() == 0) return std::nullopt;
  return product;
}

std::uint64_t scratch_with_sums(const Problem& problem, const Config& config, const Splits& splits,
                                std::uint64_t own_floats) {
  std::uint64_t floats = 0;
  for (const Stage& stage : stages(problem.as<MatmulProblem>().slots, true)) {
    const auto product = product_with_terms(problem, stage);
    if (!product) continue;
    const std::uint32_t shares =
        multiplies(stage) ? splits(*product, config) : splits_of_sums(*product);
    floats = std::max(floats, partial_floats(*product, shares));
  }
  return 4 * (partial_start(problem, own_floats) + floats);
}

Refusal rejects_sums(const Problem& problem, const Config& config, const Splits& splits,
                     std::uint64_t own_floats) {
  if (scratch_with_sums(problem, config, splits, own_floats) / 4 >= std::uint64_t{1} << 31)
    return "counts elements to 2^31, and the sums of shares are more";
  return std::nullopt;
}

std::vector<Pass> sums_passes(const Stage& stage, std::uint64_t own_floats) {
  constexpr std::uint32_t kItems = 64;
  Pass pass;
  pass.name = stage.name + " sums";
  pass.opencl = {.file = "matmul/core/sums.cl", .entry = "matmul_sums"};
  pass.vulkan = {.file = "matmul/core/sums.comp", .entry = "main"};
  pass.axes = storage_axes;
  pass.bindings = {stage.slots[kB], kScratch};
  pass.specialized_on = std::vector<std::string>{"B_TYPE"};
  pass.constants = [stage](const Problem& problem, const Config&) -> std::vector<Define> {
    const auto product = product_of(problem, stage);
    return {{"B_TYPE", product ? dtype_axis(product->views[kB].dtype) : 0U}};
  };
  pass.group_size = [](const Config&) { return Dim3{kItems}; };
  pass.groups = [stage](const Problem& problem, const Config&) {
    const auto product = product_of(problem, stage);
    if (!product || product->is_empty() || product->terms() == 0) return Dim3{0, 0, 0};
    const std::int64_t units =
        product->batches() * ((product->n + 3) / 4) * splits_of_sums(*product);
    const std::int64_t groups = (units + kItems - 1) / kItems;
    return Dim3{static_cast<std::uint32_t>(std::min(groups, kMostGroups))};
  };
  pass.args = [stage, own_floats](const Problem& problem, const Config&) {
    const auto product = product_of(problem, stage);
    if (!product) return argument_bytes(abi::MatmulArgs{});
    abi::MatmulArgs args = arguments_of(*product);
    args.splits = splits_of_sums(*product);
    args.partial = static_cast<abi::u32>(partial_start(problem, own_floats));
    return argument_bytes(args);
  };
  const auto splits = [](const Product& product, const Config&) { return splits_of_sums(product); };
  return list_of(std::move(pass), combine_pass(stage, splits, own_floats));
}

std::vector<std::size_t> with_finish(std::vector<std::size_t> bindings, const Stage& stage) {
  for (const Role role : {kBias, kAddend, kGate, kResidual, kResult, kBeside, kScaleA, kScaleB})
    bindings.push_back(stage.slots[role]);
  return bindings;
}

Pass combine_pass(const Stage& stage, const Splits& splits, std::uint64_t own_floats) {
  Pass pass;
  pass.name = stage.name + " combine";
  pass.opencl = {.file = "matmul/core/combine.cl", .entry = "matmul_combine"};
  pass.vulkan = {.file = "matmul/core/combine.comp", .entry = "main"};
  pass.bindings = with_finish({kScratch}, stage);
  pass.axes = storage_axes;
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{kCombineItems}; };
  pass.groups = [stage, splits](const Problem& problem, const Config& config) {
    const auto product = product_of(problem, stage);
    if (!product || product->is_empty()) return Dim3{0, 0, 0};
    if (product->terms() != 0 && splits(*product, config) <= 1) return Dim3{0, 0, 0};
    const std::int64_t vectors = product->batches() * product->m * ((product->n + 3) / 4);
    const std::int64_t groups = (vectors + kCombineItems - 1) / kCombineItems;
    return Dim3{static_cast<std::uint32_t>(std::min(groups, kMostGroups))};
  };
  pass.args = [stage, splits, own_floats](const Problem& problem, const Config& config) {
    const auto product = product_of(problem, stage);
    if (!product) return argument_bytes(abi::MatmulArgs{});
    abi::MatmulArgs args = arguments_of(*product);
    args.splits = product->terms() == 0 ? 0 : splits(*product, config);
    args.partial = static_cast<abi::u32>(partial_start(problem, own_floats));
    return argument_bytes(args);
  };
  return pass;
}

Pass ones_pass() {
  Pass pass;
  pass.name = "ones";
  pass.opencl = {.file = "matmul/core/ones.cl", .entry = "matmul_ones"};
  pass.vulkan = {.file = "matmul/core/ones.comp", .entry = "main"};
  pass.bindings = {kScratch};
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{1}; };
  pass.groups = [](const Problem& problem, const Config&) {
    return needs_ones(problem) ? Dim3{1} : Dim3{0, 0, 0};
  };
  return pass;
}

}  // namespace tessera::operations::matmul
