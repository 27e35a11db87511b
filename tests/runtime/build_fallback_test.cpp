// SPDX-License-Identifier: Apache-2.0
// A driver that can't build one kernel gets the next variant's; an application that names a variant
// gets its error.
#include <gtest/gtest.h>

#include "selection/cache/cache.hpp"
#include "support/temporary_directory.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

Variant doubling(std::string name, std::string text) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.text = std::move(text), .entry = "twice"};
  pass.bindings = {0, 1};
  pass.groups = [](const Problem& problem, const Config&) {
    return Dim3{static_cast<std::uint32_t>(problem.spec(0).shape[0])};
  };
  Variant variant;
  variant.name = std::move(name);
  variant.dtypes = {DType::kF32};
  variant.passes = {std::move(pass)};
  variant.space = [](const Problem&, const DeviceProfile&) {
    return std::vector<Config>{Config{}};
  };
  return variant;
}

const Operation& operation() {
  static const Operation& registered = [&]() -> const Operation& {
    Operation op;
    op.name = "build_fallback_test";
    op.operands = {{.name = "x", .shape = "[n]", .dtypes = {DType::kF32}},
                   {.name = "y", .role = Role::kOutput, .shape = "[n]"}};
    op.validate = [](Problem& problem) {
      problem.infer_output(1, DType::kF32, problem.spec(0).shape);
      problem.dtype = DType::kF32;
    };
    op.reference = [](const Problem&, std::span<HostTensor> tensors) {
      std::vector<double> values = tensors[0].read();
      for (double& value : values) value *= 2;
      tensors[1].write(values);
    };
    const std::string head =
        "kernel void twice(const global float* x, global float* y) { const size_t i = ";
    op.variants = {doubling("broken", head + "a_builtin_that_no_driver_has(); y[i] = x[i]; }"),
                   doubling("sound", head + "get_group_id(0); y[i] = 2 * x[i]; }")};
    return register_operation(op);
  }();
  return registered;
}

class BuildFallback : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto devices = select_devices(probe_devices(), "opencl");
    if (devices.empty()) GTEST_SKIP() << "there is no OpenCL device";
    operation();
    context_ =
        Context::open({.device = std::to_string(devices.front().index), .cache_directory = ""});
    x_ = context_->upload(std::vector<float>{1, 2, 3}, {3});
  }

  std::optional<Context> context_;
  Tensor x_;
};

TEST_F(BuildFallback, TakesTheNextVariant) {
  std::vector<Event> errors;
  context_->on_event([&](const Event& event) {
    if (event.name == "error") errors.push_back(event);
  });
  const Tensors out = Executor(*context_).run(operation().name, {{"x", x_}});
  EXPECT_EQ(context_->download<float>(out.at("y")), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(context_->last_execution().choice.variant, "sound");
  EXPECT_EQ(context_->last_execution().choice.why, "variant broken does not build on this device");
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].variant, "broken");
  Executor(*context_).run(operation().name, {{"x", x_}});
  EXPECT_EQ(errors.size(), 1U) << "the plan is remembered";
}

TEST_F(BuildFallback, GivesTheErrorOfANamedVariant) {
  EXPECT_THROW(Executor(*context_).with_variant("broken").run(operation().name, {{"x", x_}}),
               BuildError);
}

TEST_F(BuildFallback, GivesTheErrorWhereTheRulesMayNotChoose) {
  const testing::TemporaryDirectory directory;
  const DeviceProfile& profile = context_->device();
  const Problem problem = make_problem(operation(), {x_.spec(), std::nullopt}, {});
  // Whoever tuned it had another driver.
  selection::PersistentCache(directory.path(), context_->fingerprint(), profile)
      .put(selection::entry_key(problem),
           selection::new_entry(problem, profile.backend,
                                {.variant = "broken", .origin = Tier::kAutotune},
                                {.milliseconds = 1}));
  const Context context = Context::open({.device = std::to_string(context_->device_index()),
                                         .cache_directory = directory.path().string()});
  const Tensors in{{"x", context.upload(std::vector<float>{1, 2, 3}, {3})}};
  const Executor executor(context);
  EXPECT_THROW(executor.with_policy({.heuristics = false}).run(operation().name, in), BuildError);
  EXPECT_THROW(executor.with_tiers({Tier::kPersistent}).run(operation().name, in), BuildError);
  executor.run(operation().name, in);
  EXPECT_EQ(context.last_execution().choice.variant, "sound");
}

}  // namespace
}  // namespace tessera
