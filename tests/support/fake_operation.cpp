// SPDX-License-Identifier: Apache-2.0
#include "support/fake_operation.hpp"

#include <bit>

#include "kernel/hash_of_kernels.hpp"

namespace tessera::testing {
namespace {

constexpr std::size_t kX = 0, kY = 1;

Source opencl_text() { return {.text = "kernel void scale() {}", .entry = "scale"}; }
Source spirv() { return {.spirv = {0x07230203}, .entry = "main"}; }

std::uint32_t groups_for(const Problem& problem, std::uint32_t each) {
  const auto n = static_cast<std::uint64_t>(problem.spec(kX).elements());
  return static_cast<std::uint32_t>((n + each - 1) / each);
}

Variant blocked() {
  return {
      .name = "blocked",
      .idea = "a block of elements for each work-group",
      .needs = {.features = Feature::kSubgroupArithmetic},
      .dtypes = {DType::kF32, DType::kF16},
      .tunables = {{.id = 3, .name = "BLOCK", .fallback = 32, .is_constant = false},
                   {.id = 4, .name = "LENGTH", .fallback = 0, .is_constant = true}},
      .passes = {{.name = "scale",
                  .opencl = opencl_text(),
                  .vulkan = spirv(),
                  .bindings = {kX, kY},
                  .groups =
                      [](const Problem& problem, const Config& config) {
                        return Dim3{.x = groups_for(problem, config.at("BLOCK"))};
                      }}},
      .space =
          [](const Problem&, const DeviceProfile&) {
            return std::vector<Config>{{{"BLOCK", 128}, {"WG_X", 128}},
                                       {{"BLOCK", 64}, {"WG_X", 64}},
                                       {{"BLOCK", 32}, {"WG_X", 32}}};
          },
      .local_bytes = [](const Problem&,
                        const Config& config) { return std::uint64_t{512} * config.at("BLOCK"); },
      .rejects = [](const Problem& problem, const Config& config, const DeviceProfile&) -> Refusal {
        if (problem.spec(kX).elements() % config.at("BLOCK") == 0) return std::nullopt;
        return "needs a length that BLOCK divides";
      }};
}

Variant plain() {
  return {.name = "plain",
          .idea = "one element for each work-item",
          .tunables = {{.id = 3, .name = "UNROLL", .fallback = 4, .is_constant = false}},
          .passes = {{.name = "scale",
                      .opencl = opencl_text(),
                      .vulkan = spirv(),
                      .bindings = {kX, kY},
                      .groups =
                          [](const Problem& problem, const Config& config) {
                            return Dim3{.x = groups_for(problem, config.group().x)};
                          }}},
          .space =
              [](const Problem&, const DeviceProfile&) {
                return std::vector<Config>{{{"WG_X", 256}}, {{"WG_X", 64}}, {{"WG_X", 1}}};
              },
          .scratch_bytes =
              [](const Problem& problem, const Config&) {
                return 4 * static_cast<std::uint64_t>(problem.spec(kX).elements());
              }};
}

Variant reference() {
  return {.name = "reference",
          .idea = "the definition",
          .needs = {.backends = {Backend::kHost}},
          .passes = {{.name = "reference",
                      .host = [](const Problem&, std::span<HostTensor>) {},
                      .bindings = {kX, kY}}},
          .space = [](const Problem&, const DeviceProfile&) { return std::vector<Config>{{}}; }};
}

}  // namespace

const Operation& fake_operation() {
  static const Operation operation{
      .name = "scale",
      .operands = {{.name = "x", .shape = "[n]"},
                   {.name = "y", .role = Role::kOutput, .shape = "[n]"}},
      .validate =
          [](Problem& problem) {
            const TensorSpec& x = problem.spec(kX);
            problem.dtype = x.dtype;
            problem.key = "dtype=" + std::string(to_string(x.dtype)) + ";n=" +
                          std::to_string(std::bit_ceil(static_cast<std::uint64_t>(x.elements())));
            problem.infer_output(kY, x.dtype, x.shape);
          },
      .reference = [](const Problem&, std::span<HostTensor>) {},
      .variants = {blocked(), plain(), reference()},
      .rules =
          {{.why = "blocks keep a GPU busy",
            .when = [](const Problem&, const DeviceProfile& profile) { return is_gpu(profile); },
            .variant = "blocked",
            .config =
                [](const Problem&, const DeviceProfile&) {
                  return Config{{"BLOCK", 64}, {"WG_X", 64}};
                }},
           {.why = "a CPU has no use for work-items",
            .when = [](const Problem&, const DeviceProfile& profile) { return is_cpu(profile); },
            .variant = "plain",
            .config =
                [](const Problem&, const DeviceProfile&) {
                  return Config{{"WG_X", 1}};
                }}}};
  return operation;
}

Problem fake_problem(std::int64_t n, DType dtype) {
  return make_problem(fake_operation(), {TensorSpec::contiguous(dtype, {n}), std::nullopt}, {});
}

selection::Entry tuned(std::string variant, Config config, double milliseconds) {
  return {.variant = std::move(variant),
          .config = std::move(config),
          .origin = Tier::kAutotune,
          .milliseconds = milliseconds,
          .error_over_bound = 0.25,
          .date = "2025-01-31T12:00:00Z",
          .kernels = kernel::hash_of_kernels(fake_operation(), Backend::kVulkan)};
}

TuneReport won(const Problem& problem, std::string variant, Config config, double milliseconds) {
  TuneReport report;
  report.operation = problem.operation->name;
  report.key = problem.key;
  report.best = Choice{.variant = variant,
                       .config = config,
                       .tier = Tier::kAutotune,
                       .origin = Tier::kAutotune,
                       .why = "the fastest"};
  report.measurements = {{.variant = std::move(variant),
                          .config = std::move(config),
                          .milliseconds = milliseconds,
                          .error_over_bound = 0.5}};
  return report;
}

}  // namespace tessera::testing
