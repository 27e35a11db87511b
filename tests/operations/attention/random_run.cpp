// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "conformance/conformance.hpp"
#include "operations/attention/random.hpp"
#include "operations/attention_core/cases/workload.hpp"
#include "runtime/plan.hpp"
#include "selection/selector.hpp"
#include "support/family.hpp"
#include "tessera/error.hpp"

namespace tessera::testing {
namespace {

struct Kernel {
  const Variant* variant;
  Config config;
  bool of_the_table = false;  // and not what a typical call would take
};

// Of so many calls one takes any kernel. The others take one whose programs the quick table has
// built, where there is such a one: on processors compilers are what calls cost.
constexpr std::uint64_t kCallsForAnyKernel = 20;

class Runner {
 public:
  explicit Runner(const Context& context) : context_(context) {
    if (!is_cpu(context.device())) return;
    for (const Operation* operation : all_operations()) {
      if (family_of(*operation) == "attention")
        conformance::check(context, *operation, {.quick = true, .list = true, .shared = &table_},
                           [](const conformance::CheckResult&) {});
    }
  }

  RandomResult run(std::uint64_t seed) {
    const DeviceProfile& device = context_.device();
    const bool is_lavapipe = is_cpu(device) && device.backend == Backend::kVulkan;
    const RandomAttention drawn = random_attention(seed, !is_lavapipe);
    const Operation& operation = find_operation(drawn.operation);
    RandomResult result{.seed = seed};
    result.name =
        drawn.operation + "/" + std::string(to_string(drawn.dtype)) + " " + drawn.shape.name;
    try {
      const Problem problem = make_problem(operation, drawn.shape.operands, drawn.shape.options);
      result.failure = imprecise_choice(problem);
      if (!result.failure.empty()) return result;
      std::vector<Kernel> kernels = accepting(problem, drawn, result.skipped);
      if (kernels.empty()) return result;
      choose_among(problem, seed % kCallsForAnyKernel == 0, kernels);
      const Kernel& kernel = kernels[drawn.kernel % kernels.size()];
      result.name =
          full_name(operation, *kernel.variant, kernel.config, drawn.dtype, context_.device()) +
          " " + drawn.shape.name;
      for (const auto& program : names(problem, kernel)) programs_.insert(program.key());
      check_call(context_, operation, drawn.shape, *kernel.variant, kernel.config, result);
    } catch (const Error& error) {
      result.failure = error.what();
    }
    return result;
  }

  void count_programs(RandomSummary& summary) const {
    summary.programs = programs_.size();
    summary.programs_of_the_table = static_cast<std::size_t>(std::ranges::count_if(
        programs_, [&](const std::string& key) { return table_.built.programs.contains(key); }));
  }

 private:
  conformance::Programs names(const Problem& problem, const Kernel& kernel) const {
    return runtime::program_names(problem, *kernel.variant, kernel.config, context_.device());
  }

  // What is wrong with what an application would get, if it keeps less than the call asks for.
  std::string imprecise_choice(const Problem& problem) const {
    if (problem.precision == Precision::kDefault) return {};
    try {
      const Choice choice = Executor(context_).explain(problem).execution.choice;
      const Variant& variant = *problem.operation->find_variant(choice.variant);
      if (precision_of(variant, problem.dtype) >= problem.precision) return {};
      return "precision=" + std::string(to_string(problem.precision)) + " was answered with " +
             variant.name + ", which keeps less";
    } catch (const Unsupported&) {
      return {};  // nothing was chosen
    }
  }

  // Leaves what the table has built, or what a typical call would take.
  void choose_among(const Problem& problem, bool any, std::vector<Kernel>& kernels) const {
    const auto is_new = [&](const Kernel& kernel) {
      return !has_programs(table_.built, names(problem, kernel));
    };
    if (!any && !std::ranges::all_of(kernels, is_new)) {
      std::erase_if(kernels, is_new);
    } else if (!std::ranges::all_of(kernels, &Kernel::of_the_table)) {
      std::erase_if(kernels, [](const Kernel& kernel) { return kernel.of_the_table; });
    }
  }

  // The kernels of the pool that take this call; none: why not.
  std::vector<Kernel> accepting(const Problem& problem, const RandomAttention& drawn,
                                std::string& why_not) {
    std::vector<Kernel> kernels = pool(problem);
    why_not = "no variant of " + drawn.operation + " runs on this device";
    const auto& call = problem.as<operations::attention::AttentionProblem>();
    std::erase_if(kernels, [&](Kernel& kernel) {
      if (kernel.config.get("SPLITS", 0) > 0) {
        kernel.config.set("SPLITS", static_cast<std::uint32_t>(
                                        call.splits > 0 ? static_cast<std::uint64_t>(call.splits)
                                                        : drawn.splits));
      }
      const Refusal no =
          selection::refusal(problem, *kernel.variant, kernel.config, context_.device());
      if (no) why_not = problem.operation->name + "." + kernel.variant->name + ": " + *no;
      return no.has_value();
    });
    if (!kernels.empty()) why_not.clear();
    return kernels;
  }

  // Of an operation, a storage type and dims: what a few calls like these would take, and what the
  // quick table takes. On CPUs through OpenCL float calls get all of it, the others only kernels
  // made for CPUs.
  const std::vector<Kernel>& pool(const Problem& problem) {
    const auto& call = problem.as<operations::attention::AttentionProblem>();
    std::vector<Kernel>& kernels =
        pools_[problem.operation->name + std::string(to_string(problem.dtype))];
    if (!kernels.empty()) return kernels;
    const DeviceProfile& device = context_.device();
    const bool slow_compiler = device.backend == Backend::kOpenCL && is_cpu(device);
    const bool all = problem.dtype == DType::kF32 || !slow_compiler;
    const auto is_left_out = [&](const Variant& variant) {
      return !all && variant.needs.kinds.empty();
    };
    const auto slots = operations::attention::attention_slots(problem.operation->operands);
    std::vector<operations::attention::AttentionSizes> sizes{
        {.batch = 2, .q_len = 70, .kv_len = 130, .heads = 2},
        {.batch = 1, .q_len = 3, .kv_len = 130, .heads = 2}};
    if (all) sizes.push_back({.batch = 1, .q_len = 3, .kv_len = 130, .heads = 4, .kv_heads = 2});
    for (operations::attention::AttentionSizes& size : sizes) {
      size.head_dim = call.head_dim;
      size.value_dim = call.value_dim;
      const Case like = make_case(slots, problem.dtype,
                                  {.name = "pool", .why = "what kernels are for", .sizes = size});
      const Problem typical = make_problem(*problem.operation, like.operands, {});
      for (const Variant& variant : problem.operation->variants) {
        if (is_left_out(variant)) continue;
        add_first(typical, variant, all, kernels);
      }
    }
    for (const Variant& variant : problem.operation->variants) {
      if (is_left_out(variant)) continue;
      const auto pinned = table_.pinned.find(
          conformance::kernels_of(variant, problem.types, context_.device().backend));
      if (pinned == table_.pinned.end()) continue;
      for (const Config& config : pinned->second) add({&variant, config, true}, kernels);
    }
    return kernels;
  }

  // The variant's first configuration, if it is new; one of each variant where `all` are not asked
  // for.
  void add_first(const Problem& typical, const Variant& variant, bool all,
                 std::vector<Kernel>& kernels) const {
    if (selection::refusal(typical, variant, context_.device())) return;
    for (const Config& config : variant.space(typical, context_.device())) {
      if (selection::refusal(typical, variant, config, context_.device())) continue;
      const auto is_of_it = [&](const Kernel& kernel) { return kernel.variant == &variant; };
      if (all || std::ranges::none_of(kernels, is_of_it)) add({&variant, config}, kernels);
      return;
    }
  }

  static void add(Kernel one, std::vector<Kernel>& kernels) {
    const bool known = std::ranges::any_of(kernels, [&](const Kernel& kernel) {
      return kernel.variant == one.variant && kernel.config == one.config;
    });
    if (!known) kernels.push_back(std::move(one));
  }

  const Context& context_;
  conformance::Shared table_;
  std::set<std::string> programs_;  // of the calls so far
  std::map<std::string, std::vector<Kernel>> pools_;
};

}  // namespace

RandomSummary check_random_attention(const Context& context, std::uint64_t first,
                                     std::uint64_t count,
                                     const std::function<void(const RandomResult&)>& each) {
  Runner runner(context);
  RandomSummary summary = run_seeds(
      first, count, [&](std::uint64_t seed) { return runner.run(seed); }, each);
  runner.count_programs(summary);
  return summary;
}

}  // namespace tessera::testing
