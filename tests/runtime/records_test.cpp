// SPDX-License-Identifier: Apache-2.0
// What records say beyond inputs, outputs and a list of passes: operands that are changed in place,
// errors that kernels raise, steps, and combinations of dtypes. The operation of
// examples/append_rows on every platform, and made-up ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../examples/append_rows/operation.hpp"
#include "conformance/conformance.hpp"
#include "runtime/glsl.hpp"
#include "support/messages.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

constexpr std::int64_t kCacheRows = 8, kFeatures = 5;

Operation named(std::string name, Variant variant) {
  Operation operation = append_rows::operation(std::move(variant));
  operation.name = std::move(name);
  return operation;
}

Variant rows_variant() {
  return append_rows::rows_variant(TESSERA_SOURCE_DIR "/examples/append_rows");
}

// cache[slots[n], :] = rows[n, :] twice `rounds` times, with the number of the round added each
// time: a loop of launches on scratch, and a call of append_rows from there.
struct RoundArgs {
  std::uint32_t count, from_offset, round;
};

Variant rounds_variant() {
  const auto count = [](const Problem& problem) {
    return static_cast<std::uint32_t>(problem.spec(append_rows::kRows).elements());
  };
  const auto args = [=](const Problem& problem, std::uint32_t offset, std::uint32_t round) {
    return argument_bytes(
        RoundArgs{.count = count(problem), .from_offset = offset, .round = round});
  };
  Pass pass;
  pass.name = "round";
  pass.opencl = {
      .text =
          "typedef struct { uint count, from_offset, round; } Args;\n"
          "kernel void next(const global float* from, global float* to, const Args args) {\n"
          "  const uint i = get_global_id(0);\n"
          "  const float x = from[args.from_offset + i];\n"
          "  if (i < args.count) to[i] = args.round == 0 ? x : 2 * x + args.round;\n"
          "}\n",
      .entry = "next"};
  pass.vulkan.text =
      "#version 450\n"
      "layout(local_size_x_id = 0) in;\n"
      "layout(binding = 0) readonly buffer From { float from[]; };\n"
      "layout(binding = 1) writeonly buffer To { float to[]; };\n"
      "layout(push_constant) uniform Push { uint count, from_offset, round; };\n"
      "void main() {\n"
      "  const uint i = gl_GlobalInvocationID.x;\n"
      "  const float x = from[from_offset + i];\n"
      "  if (i < count) to[i] = round == 0 ? x : 2 * x + round;\n"
      "}\n";
  pass.bindings = {append_rows::kRows, kScratch};
  pass.groups = [=](const Problem& problem, const Config&) { return Dim3{count(problem)}; };
  pass.args = [=](const Problem& problem, const Config&) {
    return args(problem, static_cast<std::uint32_t>(problem.spec(append_rows::kRows).offset), 0);
  };
  Pass again = pass;
  again.name = "again";
  again.bindings = {kScratch, kScratch};

  Variant variant;
  variant.name = "rounds";
  variant.passes = {std::move(pass), std::move(again)};
  variant.space = [](const Problem&, const DeviceProfile&) {
    return std::vector<Config>{{{"WG_X", 1}}};
  };
  variant.scratch_bytes = [=](const Problem& problem, const Config&) {
    return std::uint64_t{count(problem)} * sizeof(float);
  };
  variant.steps = [=](const Problem& problem, const Config&) {
    std::vector<Step> steps{LaunchStep{.pass = "round"}};
    const std::int64_t rounds = std::get<std::int64_t>(problem.option("rounds"));
    for (std::int64_t round = 1; round <= rounds; ++round) {
      steps.emplace_back(
          LaunchStep{.pass = "again", .args = args(problem, 0, static_cast<std::uint32_t>(round))});
    }
    const TensorSpec& rows = problem.spec(append_rows::kRows);
    const auto operand = [&](std::size_t slot) { return Place{slot, problem.spec(slot)}; };
    steps.emplace_back(
        CallStep{.operation = "append_rows",
                 .operands = {{"rows", {kScratch, TensorSpec::contiguous(rows.dtype, rows.shape)}},
                              {"slots", operand(append_rows::kSlots)},
                              {"cache", operand(append_rows::kCache)}}});
    return steps;
  };
  return variant;
}

Operation rounds_operation() {
  Operation operation = named("append_rounds", rounds_variant());
  operation.errors.clear();  // those of append_rows are its own
  operation.options = {{.name = "rounds", .fallback = std::int64_t{3}, .type = "int"}};
  operation.reference = [](const Problem& problem, std::span<HostTensor> tensors) {
    std::vector<double> rows = tensors[append_rows::kRows].read();
    const std::int64_t rounds = std::get<std::int64_t>(problem.option("rounds"));
    for (double& x : rows) {
      for (std::int64_t round = 1; round <= rounds; ++round) x = 2 * x + static_cast<double>(round);
    }
    std::vector<HostTensor> scaled(tensors.begin(), tensors.end());
    scaled[append_rows::kRows] = {
        .spec = TensorSpec::contiguous(DType::kF64, problem.spec(append_rows::kRows).shape),
        .data = reinterpret_cast<std::byte*>(rows.data())};
    append_rows::reference(problem, scaled);
  };
  return operation;
}

// append_rows with something wrong in its OpenCL kernel.
Operation wrong(const std::string& name, const std::string& right, const std::string& instead) {
  Variant variant = rows_variant();
  std::string& text = variant.passes.front().opencl.text;
  const std::size_t at = text.find(right);
  EXPECT_NE(at, std::string::npos) << right;
  text.replace(at, right.size(), instead);
  return named(name, std::move(variant));
}

class Records : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_operation(append_rows::operation(rows_variant()));
    register_operation(rounds_operation());
    for (const char* device : {"host", "opencl:cpu", "vulkan:cpu"}) {
      if (std::string_view(device) == "vulkan:cpu" && !runtime::can_compile_glsl()) continue;
      if (select_devices(probe_devices(), device).empty()) continue;
      contexts_.push_back(Context::open({.device = device, .cache_directory = ""}));
    }
  }
  static void TearDownTestSuite() { contexts_.clear(); }

  static Tensors call(const Context& context, const std::vector<std::int32_t>& slots) {
    const auto rows = static_cast<std::int64_t>(slots.size());
    std::vector<float> values(slots.size() * kFeatures);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0F + static_cast<float>(i);
    return {{"rows", context.upload(values, {rows, kFeatures})},
            {"slots", context.upload(slots, {rows})},
            {"cache", context.upload(std::vector<float>(kCacheRows * kFeatures, 0.5F),
                                     {kCacheRows, kFeatures})}};
  }

  static std::vector<Context> contexts_;
};
std::vector<Context> Records::contexts_;

TEST_F(Records, OperandsAreChangedInPlace) {
  for (const Context& context : contexts_) {
    const Tensors tensors = call(context, {6, 0});
    const Tensors outputs = Executor(context).run("append_rows", tensors);
    ASSERT_EQ(outputs.size(), 1U);
    EXPECT_EQ(outputs.at("cache").buffer(), tensors.at("cache").buffer());
    const std::vector<float> cache = context.download<float>(tensors.at("cache"));
    for (std::int64_t i = 0; i < kCacheRows * kFeatures; ++i) {
      const std::int64_t row = i / kFeatures, column = i % kFeatures;
      const float wanted = row == 6   ? 1.0F + static_cast<float>(column)
                           : row == 0 ? 1.0F + static_cast<float>(kFeatures + column)
                                      : 0.5F;
      EXPECT_EQ(cache[static_cast<std::size_t>(i)], wanted) << i;
    }
  }
}

TEST_F(Records, WhatIsWrittenOverlapsNothing) {
  const Context& context = contexts_.front();
  Tensors tensors = call(context, {1, 2});
  tensors["rows"] = tensors.at("cache").slice(0, 6, 8);
  EXPECT_EQ(message_of<InvalidArgument>([&] { Executor(context).run("append_rows", tensors); }),
            "append_rows: in-out 'cache' overlaps 'rows'");
  tensors.erase("cache");
  EXPECT_THAT(message_of<InvalidArgument>([&] { Executor(context).run("append_rows", tensors); }),
              HasSubstr("'cache' [size, features] is missing"));
}

TEST_F(Records, TheNextWaitThrowsWhatTheFirstCallRaised) {
  for (const Context& context : contexts_) {
    const Executor executor(context);
    const auto error_of = [&](const auto& wait) -> std::string {
      try {
        wait();
      } catch (const DataError& error) {
        EXPECT_EQ(error.operation(), "append_rows");
        EXPECT_EQ(error.operand(), "slots");
        EXPECT_EQ(error.kind(), "slot_outside_cache");
        return error.what();
      }
      return "";
    };
    executor.run("append_rows", call(context, {1, 2, 3}));
    EXPECT_EQ(error_of([&] { context.synchronize(); }), "");
    executor.run("append_rows", call(context, {1, 2, 3, -1, 4, 8}));
    executor.run("append_rows", call(context, {-7, 2}));
    EXPECT_EQ(error_of([&] { context.synchronize(); }),
              "append_rows: slots[3] names no row of the cache");
    EXPECT_EQ(error_of([&] { context.synchronize(); }), "") << "it is thrown once";
    const Tensors tensors = call(context, {1, 99, 2});
    executor.run("append_rows", tensors);
    EXPECT_EQ(error_of([&] { context.download<float>(tensors.at("cache")); }),
              "append_rows: slots[1] names no row of the cache");
    EXPECT_EQ(context.download<float>(tensors.at("cache"))[2 * kFeatures], 11.0F);

    Stream stream = context.create_stream();
    executor.on(stream).run("append_rows", call(context, {9}));
    EXPECT_EQ(error_of([&] { context.synchronize(); }), "") << "it is another stream's";
    EXPECT_NE(error_of([&] { stream.synchronize(); }), "");
  }
}

// Work-groups run in any order, and side by side.
TEST_F(Records, OfManyErrorsTheSmallestIndexOfTheFirstCallIsTold) {
  constexpr std::size_t kRows = 5000;
  std::vector<std::int32_t> late(kRows, -1), all(kRows, 99);
  for (std::size_t i = 0; i < 4321; ++i) late[i] = static_cast<std::int32_t>(i % kCacheRows);
  for (const Context& context : contexts_) {
    const Executor executor(context);
    const Tensors first = call(context, late), second = call(context, all);
    for (int round = 0; round < 20; ++round) {
      const bool turned = round % 2 != 0;
      executor.run("append_rows", turned ? second : first);
      executor.run("append_rows", turned ? first : second);
      EXPECT_EQ(message_of<DataError>([&] { context.synchronize(); }),
                "append_rows: slots[" + std::string(turned ? "0" : "4321") +
                    "] names no row of the cache")
          << round;
    }
  }
}

// More calls than a stream has words for: nothing is lost.
TEST_F(Records, ManyCallsRaiseWithoutAWait) {
  const Context& context = contexts_.back();
  const Tensors bad = call(context, {-1}), good = call(context, {1});
  Executor(context).run("append_rows", bad);
  bool thrown = false;
  for (int i = 0; i < 16400; ++i) {
    try {
      Executor(context).run("append_rows", good);
    } catch (const DataError&) {
      thrown = true;
    }
  }
  EXPECT_TRUE(thrown);
  context.synchronize();
}

TEST_F(Records, CallersReadTheirOwnErrors) {
  for (const Context& context : contexts_) {
    const ErrorLog log(context, 2);
    const Executor executor = Executor(context).with_errors(log);
    check_errors(log);
    executor.run("append_rows", call(context, {1}));
    executor.run("append_rows", call(context, {3, 8}));
    context.synchronize();  // throws nothing
    const auto words = context.download<std::int32_t>(log.words());
    EXPECT_EQ(words, (std::vector<std::int32_t>{-1, 1}));
    const std::string sentence = "append_rows: slots[1] names no row of the cache";
    EXPECT_EQ(message_of<DataError>([&] { check_errors(log); }), sentence);
    EXPECT_EQ(message_of<DataError>([&] { check_errors(log, words); }), sentence);
    EXPECT_THAT(
        message_of<InvalidArgument>([&] { executor.run("append_rows", call(context, {1})); }),
        HasSubstr("has no room"));
    log.clear();
    check_errors(log);
    executor.run("append_rows", call(context, {1}));
    check_errors(log);
  }
}

// Tables with planted errors, and candidates of the tuner, each from the operands as they were.
TEST_F(Records, TableTunerAndBenchmarkTakeThem) {
  for (const Context& context : contexts_) {
    for (const char* name : {"append_rows", "append_rounds"}) {
      const Operation& operation = find_operation(name);
      const conformance::CheckSummary summary =
          conformance::check(context, operation, {}, [](const conformance::CheckResult& result) {
            EXPECT_TRUE(result.passed || result.skipped) << result.name << ": " << result.detail;
          });
      EXPECT_GT(summary.passed, 0U);
      EXPECT_EQ(summary.failed, 0U);
      const Case shape = append_rows::a_case("tuned", 7, 20, 6, "planted");
      const TuneReport report = Executor(context).tune(shape, name);
      ASSERT_TRUE(report.best);
      const conformance::VerifiedRun run =
          conformance::verify_and_time(context, operation, shape, true, 0.001);
      EXPECT_EQ(run.failure, "");
      context.synchronize();  // made-up operands raise nothing for applications
    }
  }
}

TEST_F(Records, WrongKernelsAreFound) {
  if (select_devices(probe_devices(), "opencl:cpu").empty())
    GTEST_SKIP() << "no OpenCL device here runs these kernels";
  const Context context = Context::open({.device = "opencl:cpu", .cache_directory = ""});
  const auto failure = [&](const Operation& operation, const char* data) {
    register_operation(operation);
    return conformance::verify_and_time(context, find_operation(operation.name),
                                        append_rows::a_case("wrong", 7, 20, 6, data), false, 0)
        .failure;
  };
  EXPECT_THAT(failure(wrong("append_elsewhere", "  for (uint i =",
                            "  cache[args.cache_offset + (slot + 1) % args.cache_rows * "
                            "args.features] = 0;\n  for (uint i ="),
                      "normal"),
              ::testing::AnyOf(HasSubstr("wrote outside the elements of cache that the call"),
                               HasSubstr("must be")));
  EXPECT_THAT(failure(wrong("append_beyond", "(size_t)slot * args.features + i",
                            "(size_t)slot * args.features + i + args.features * args.cache_rows"),
                      "normal"),
              HasSubstr("wrote outside the elements of cache that the call writes"));
  EXPECT_THAT(
      failure(wrong("append_silently", "atomic_min(errors + args.errors, n);", "{}"), "planted"),
      HasSubstr("raised slot_outside_cache of slots nowhere but must at 3"));
  EXPECT_THAT(failure(wrong("append_falsely", "slot < 0 ||", "slot <= 1 ||"), "normal"),
              HasSubstr("but must nowhere"));
}

// Records that tell of what they do not have.
TEST_F(Records, WrongRecordsAreToldOf) {
  Operation raising = named("append_raises_more", rows_variant());
  raising.raises = [](const Problem&, std::span<HostTensor>) {
    return std::vector<Raised>{{.error = 1, .index = 0}};
  };
  register_operation(raising);
  Operation writing = named("append_writes_more", rows_variant());
  writing.writes = [](const Problem& problem, std::span<HostTensor>, std::size_t slot) {
    return std::vector<std::size_t>{static_cast<std::size_t>(problem.spec(slot).elements())};
  };
  register_operation(writing);
  Variant variant = rows_variant();
  variant.passes.front().errors_at = sizeof(append_rows::Args);
  register_operation(named("append_errors_beyond", variant));

  const std::string sentence =
      "append_raises_more: raises() tells of an error that the record does not have";
  const Case shape = append_rows::a_case("wrong", 7, 20, 6, "normal");
  for (const Context& context : contexts_) {
    const auto verify = [&](const std::string& name) {
      return conformance::verify_and_time(context, find_operation(name), shape, false, 0).failure;
    };
    EXPECT_EQ(message_of<InvalidArgument>([&] { verify("append_raises_more"); }), sentence);
    EXPECT_EQ(message_of<InvalidArgument>([&] { verify("append_writes_more"); }),
              "append_writes_more: writes() tells of an element that cache does not have");
    if (context.device().backend == Backend::kHost) continue;  // it takes no arguments
    EXPECT_EQ(message_of<InvalidArgument>(
                  [&] { Executor(context).run("append_errors_beyond", call(context, {1})); }),
              "rows: errors_at of pass 'append' lies beyond its arguments");
  }
}

TEST_F(Records, StepsRepeatLaunchesAndCallOthers) {
  for (const Context& context : contexts_) {
    const Executor executor(context);
    for (const std::int64_t rounds : {0, 1, 4}) {
      const Tensors tensors = call(context, {2, 5});
      executor.run("append_rounds", tensors, {{"rounds", rounds}});
      double wanted = 1;
      for (std::int64_t round = 1; round <= rounds; ++round)
        wanted = 2 * wanted + static_cast<double>(round);
      EXPECT_EQ(context.download<float>(tensors.at("cache"))[2 * kFeatures], wanted);
    }
    if (context.device().backend == Backend::kHost) continue;  // its reference calls nobody
    executor.run("append_rounds", call(context, {1, 2, 50}));
    EXPECT_EQ(message_of<DataError>([&] { context.synchronize(); }),
              "append_rows: slots[2] names no row of the cache");
  }
}

// A call launches, calls another operation, and launches again.
TEST_F(Records, ErrorsAreAskedForOncePerCall) {
  static int asked;
  Operation operation = named("append_between", {});
  operation.raises = [](const Problem&, std::span<HostTensor>) {
    ++asked;
    return std::vector<Raised>{};
  };
  Pass pass;
  pass.name = "nothing";
  pass.host = [](const Problem&, std::span<HostTensor>) {};
  pass.bindings = {append_rows::kRows, append_rows::kSlots, append_rows::kCache};
  Variant variant;
  variant.name = "between";
  variant.needs.backends = {Backend::kHost};
  variant.passes = {std::move(pass)};
  variant.space = [](const Problem&, const DeviceProfile&) {
    return std::vector<Config>{Config{}};
  };
  variant.steps = [](const Problem& problem, const Config&) {
    const auto operand = [&](std::size_t slot) { return Place{slot, problem.spec(slot)}; };
    const CallStep call{.operation = "append_rows",
                        .operands = {{"rows", operand(append_rows::kRows)},
                                     {"slots", operand(append_rows::kSlots)},
                                     {"cache", operand(append_rows::kCache)}}};
    return std::vector<Step>{LaunchStep{.pass = "nothing"}, call, LaunchStep{.pass = "nothing"}};
  };
  operation.variants = {std::move(variant)};
  register_operation(std::move(operation));
  for (const Context& context : contexts_) {
    if (context.device().backend != Backend::kHost) continue;
    asked = 0;
    Executor(context).with_variant("between").run("append_between", call(context, {1}));
    EXPECT_EQ(asked, 1);
  }
}

TEST_F(Records, CallsThatNobodyCanDoAreRefused) {
  Variant variant = rounds_variant();
  const auto steps = variant.steps;
  variant.steps = [steps](const Problem& problem, const Config& config) {
    std::vector<Step> all = steps(problem, config);
    std::get<CallStep>(all.back()).variant = "no_such";
    return all;
  };
  Operation operation = rounds_operation();
  operation.name = "append_by_nobody";
  operation.variants = {variant};
  register_operation(operation);
  for (const Context& context : contexts_) {
    if (context.device().backend == Backend::kHost) continue;
    EXPECT_THAT(message_of<Unsupported>(
                    [&] { Executor(context).run("append_by_nobody", call(context, {1})); }),
                HasSubstr("calls append_rows, which nothing here can do"));
  }
}

}  // namespace
}  // namespace tessera
