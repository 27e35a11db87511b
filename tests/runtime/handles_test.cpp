// SPDX-License-Identifier: Apache-2.0
// Handles that stand for nothing, or for what is gone, and tensors made by hand: every public
// function answers or throws an Error. On the host, where a wrong address is foreign memory.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>
#include <thread>

#include "runtime/context_state.hpp"
#include "support/messages.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

using testing::message_of;

Context open_host() { return Context::open({.device = "host", .cache_directory = ""}); }

template <class Handle>
Handle moved_from(Handle handle) {
  const Handle taken = std::move(handle);
  return handle;  // NOLINT(bugprone-use-after-move): that is what is tested
}

using Calls = std::vector<std::function<void()>>;

// All of them throw InvalidArgument with that sentence.
void expect_refused(const Calls& calls, const std::string& sentence) {
  for (std::size_t n = 0; n < calls.size(); ++n)
    EXPECT_EQ(message_of<InvalidArgument>(calls[n]), sentence) << "call " << n;
}

TEST(EmptyHandles, AContextRefusesEveryCall) {
  const Context host = open_host();
  const Tensor tensor = host.upload(std::vector<float>{1, 2}, {1, 2});
  for (const Context& context : {Context(), moved_from(open_host())}) {
    EXPECT_EQ(context.state(), nullptr);
    expect_refused({[&] { context.device(); }, [&] { context.device_index(); },
                    [&] { context.fingerprint(); }, [&] { context.empty(DType::kF32, {2}); },
                    [&] { context.upload_bytes({}, DType::kF32, {0}); },
                    [&] { context.upload(std::vector<float>{1}, {1}); },
                    [&] { context.download_bytes(tensor); },
                    [&] { context.download<float>(tensor); }, [&] { context.create_stream(); },
                    [&] { context.synchronize(); }, [&] { context.last_execution(); },
                    [&] { context.on_event({}); }, [&] { Executor executor(context); },
                    [&] { flash_attention(context, tensor, tensor, tensor); }},
                   "the context is empty: Context::open() makes one");
  }
}

TEST(EmptyHandles, AStreamRefusesEveryCall) {
  const Context host = open_host();
  for (Stream stream : {Stream(), moved_from(host.create_stream())}) {
    expect_refused({[&] { stream.synchronize(); }, [&] { Executor(host).on(stream); }},
                   "the stream is empty: Context::create_stream() makes one");
  }
}

TEST(EmptyHandles, AnExecutorThatWasMovedFromRefusesEveryCall) {
  const Executor executor = moved_from(Executor(open_host()));
  const Stream stream = open_host().create_stream();
  const Problem problem = make_problem(find_operation("sequence_mean"),
                                       {TensorSpec::contiguous(DType::kF32, {1, 2, 4})}, {});
  Case shape;
  shape.operands = problem.operands;
  expect_refused(
      {[&] { executor.on(stream); }, [&] { executor.run("sequence_mean", {}); },
       [&] { executor.explain("sequence_mean", {}); }, [&] { executor.explain(problem); },
       [&] { executor.tune(shape, "sequence_mean"); }, [&] { executor.plan(problem); },
       [&] { Executor again(executor.context()); }},
      "the context is empty: Context::open() makes one");
  EXPECT_NO_THROW(executor.with_variant("x").with_config({}).with_policy({}).with_tiers({}));
}

TEST(EmptyHandles, AnErrorLogThatWasMovedFromRefusesEveryCall) {
  const Context host = open_host();
  const ErrorLog log = moved_from(ErrorLog(host));
  expect_refused({[&] { Executor(host).with_errors(log); }, [&] { log.clear(); },
                  [&] { check_errors(log); }, [&] { check_errors(log, {}); }},
                 "the error log is empty: it was moved from");
}

TEST(EmptyHandles, ATensorHasNoElementsToBeHad) {
  const Context host = open_host();
  const Tensor full = host.upload(std::vector<float>{1, 2}, {1, 2});
  for (const Tensor& tensor : {Tensor(), moved_from(full)}) {
    EXPECT_FALSE(tensor);
    EXPECT_EQ(tensor.dtype(), DType::kF32);
    EXPECT_EQ(tensor.spec().shape, tensor.shape());
    EXPECT_EQ(tensor.buffer(), nullptr);
    EXPECT_EQ(message_of<InvalidArgument>([&] { static_cast<void>(tensor.dim(0)); }),
              "dim: f32[] has no axis 0");
    EXPECT_EQ(message_of<InvalidArgument>([&] { tensor.permute({}); }),
              "permute: the tensor is empty");
    EXPECT_EQ(message_of<InvalidArgument>([&] { tensor.slice(0, 0, 0); }),
              "slice: the tensor is empty");
    EXPECT_EQ(message_of<InvalidArgument>([&] { tensor.reshape({}); }),
              "reshape: the tensor is empty");
    expect_refused({[&] { host.download_bytes(tensor); }, [&] { host.download<float>(tensor); }},
                   "download: the tensor is empty");
    EXPECT_EQ(message_of<InvalidArgument>([&] { sequence_mean(host, tensor); }),
              "sequence_mean: input is an empty tensor");
  }
  EXPECT_EQ(full.dim(-1), 2);
  EXPECT_THROW(static_cast<void>(full.dim(2)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(full.dim(-3)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(full.dim(std::numeric_limits<int>::min())), InvalidArgument);
}

// The context is closed when its last handle is gone; what it made lives on by itself.
TEST(ClosedContexts, LeaveStreamsAndTensorsThatAnswer) {
  Context context = open_host();
  Stream stream = context.create_stream();
  const Tensor tensor = context.upload(std::vector<float>{1, 2}, {1, 1, 2});
  const Executor executor = Executor(context).on(stream);
  context = Context();
  EXPECT_NO_THROW(executor.run("sequence_mean", {{"input", tensor}})) << "an executor is a handle";
  EXPECT_NO_THROW(stream.synchronize());
  EXPECT_EQ(tensor.permute({0, 2, 1}).dim(1), 2);
}

// Contexts come back at the same address; what belonged to the old one must not pass for the new
// one's.
TEST(ClosedContexts, AreNotTakenForLaterOnes) {
  for (int round = 0; round < 20; ++round) {
    Context context = open_host();
    Stream stream = context.create_stream();
    const Tensor tensor = context.upload(std::vector<float>{1, 2}, {1, 1, 2});
    sequence_mean(context, tensor);
    std::thread([&] {
      context = Context();
      context = open_host();
    }).join();
    EXPECT_EQ(message_of<InvalidArgument>([&] { context.last_execution(); }),
              "this thread has not run anything on this context yet");
    EXPECT_EQ(message_of<InvalidArgument>([&] { context.download<float>(tensor); }),
              "download: the tensor belongs to another context");
    EXPECT_EQ(message_of<InvalidArgument>([&] { sequence_mean(context, tensor); }),
              "sequence_mean: input f32[1, 1, 2] belongs to another context");
    EXPECT_EQ(message_of<InvalidArgument>([&] { Executor(context).on(stream); }),
              "the stream belongs to another context than the executor");
  }
}

TEST(LastExecution, IsOfThisThreadAndThisContext) {
  const Context a = open_host(), b = open_host();
  const Tensor tensor = a.upload(std::vector<float>{1, 2}, {1, 1, 2});
  sequence_mean(a, tensor);
  EXPECT_EQ(a.last_execution().operation, "sequence_mean");
  EXPECT_THROW(b.last_execution(), InvalidArgument);
  std::thread([&] { EXPECT_THROW(a.last_execution(), InvalidArgument); }).join();
}

// ---- tensors made by hand

const float kValues[] = {1, 2, 3, 4, 5, 6, 7, 8};

Tensor with(const Tensor& tensor, const std::function<void(TensorSpec&)>& change) {
  TensorSpec spec = tensor.spec();
  change(spec);
  return Tensor(spec, tensor.buffer());
}

TEST(HandMadeTensors, AreRefusedByEveryPath) {
  const Context host = open_host();
  const Tensor good = host.upload(std::span<const float>(kValues), {1, 2, 4});
  const std::vector<std::pair<std::string, Tensor>> bad{
      {"has a negative stride along axis 1", with(good, [](auto& s) { s.strides[1] = -1; })},
      {"starts at the negative offset -4", with(good, [](auto& s) { s.offset = -4; })},
      {"reaches byte 64 of a buffer of 32", with(good, [](auto& s) { s.offset = 8; })},
      {"reaches beyond what 64 bits can address", with(good,
                                                       [](auto& s) {
                                                         s.shape[0] = 2;
                                                         s.strides[0] = std::int64_t{1} << 61;
                                                       })},
      {"has not one stride for each axis", with(good, [](auto& s) { s.strides = {4}; })},
      {"has a negative extent along axis 1", with(good, [](auto& s) { s.shape[1] = -2; })},
      {"has more elements than 64 bits can count", with(good,
                                                        [](auto& s) {
                                                          s.shape = {std::int64_t{1} << 62, 2, 4};
                                                          s.strides = {0, 0, 0};
                                                        })},
      {"a dtype has the number 99, which stands for none",
       with(good, [](auto& s) { s.dtype = static_cast<DType>(99); })}};
  for (const auto& each : bad) {
    const std::string& why = each.first;
    const Tensor& tensor = each.second;
    const auto says = [&](const std::function<void()>& call) {
      EXPECT_NE(message_of<InvalidArgument>(call).find(why), std::string::npos)
          << why << " but: " << message_of<Error>(call);
    };
    says([&] { host.download_bytes(tensor); });
    says([&] { sequence_mean(host, tensor); });
    says([&] { Executor(host).explain("sequence_mean", {{"input", tensor}}); });
    says([&] { chunk_mean(host, good, {.cu_seqlens = tensor}); });
    if (why.starts_with("reaches byte")) continue;  // views reach no further than their tensor
    says([&] { tensor.permute({0, 2, 1}); });
    says([&] { tensor.slice(0, 0, 1); });
    says([&] { tensor.reshape({8}); });
  }
}

TEST(HandMadeTensors, OutputsMustNotShareElements) {
  const Context host = open_host();
  const Tensor q = host.upload(std::vector<float>(2 * 4 * 8, 1.0F), {2, 4, 1, 8});
  const Tensor out = host.empty(DType::kF32, {2, 4, 1, 8});
  const auto run = [&](const Tensor& output) {
    Executor(host).run("flash_attention",
                       {{"query", q}, {"key", q}, {"value", q}, {"output", output}});
  };
  EXPECT_NO_THROW(run(out));
  EXPECT_EQ(message_of<InvalidArgument>([&] { run(with(out, [](auto& s) { s.strides[0] = 8; })); }),
            "flash_attention: output f32[2, 4, 1, 8] is written to and has stride 8 along axis 1, "
            "within the 16 elements of other axes");
  EXPECT_THROW(run(with(out, [](auto& s) { s.strides[1] = 4; })), InvalidArgument);
  EXPECT_THROW(run(with(out, [](auto& s) { s.strides[0] = 0; })), InvalidArgument);
}

// Inputs may repeat elements and overlap: they read as what they say.
TEST(HandMadeTensors, InputsMayShareElements) {
  const Context host = open_host();
  const Tensor good = host.upload(std::span<const float>(kValues), {1, 2, 4});
  const Tensor repeated = with(good, [](auto& s) { s.strides[1] = 0; });
  EXPECT_EQ(host.download<float>(sequence_mean(host, repeated)), (std::vector<float>{1, 2, 3, 4}));
  const Tensor sliding = with(good, [](auto& s) { s.strides[1] = 1; });
  EXPECT_EQ(host.download<float>(sliding), (std::vector<float>{1, 2, 3, 4, 2, 3, 4, 5}));
}

TEST(HandMadeTensors, WhatTheHostHasNoMemoryForIsAnError) {
  const Context host = open_host();
  const Tensor one = host.upload(std::vector<float>{1}, {1});
  const Tensor many = with(one, [](auto& s) {
    s.shape = {std::int64_t{1} << 55};
    s.strides = {0};
  });
  EXPECT_EQ(message_of<OutOfHostMemory>([&] { host.download_bytes(many); }),
            "download: the host has no memory for the elements of f32[36028797018963968]");
  EXPECT_THROW(host.download<float>(many), OutOfHostMemory);
  EXPECT_THROW(host.empty(DType::kF32, {std::int64_t{1} << 55}), OutOfDeviceMemory);
  EXPECT_THROW(host.empty(DType::kF32, {-1}), InvalidArgument);
  EXPECT_THROW(host.empty(static_cast<DType>(99), {1}), InvalidArgument);
  EXPECT_THROW(host.upload_bytes({}, DType::kF32, {std::int64_t{1} << 62}), InvalidArgument);
}

TEST(HandMadeTensors, EmptySlicesStartNowhere) {
  const Context host = open_host();
  const Tensor good = host.upload(std::span<const float>(kValues), {2, 4});
  const Tensor none = good.slice(0, 2, 2);
  EXPECT_TRUE(host.download<float>(none).empty());
  EXPECT_TRUE(host.download<float>(none.slice(0, 0, 0).permute({1, 0})).empty());
}

TEST(HandMadeTensors, HostTensorsAreChecked) {
  HostTensor tensor{.spec = TensorSpec::contiguous(DType::kF32, {2}), .data = nullptr};
  EXPECT_THROW(tensor.read(), InvalidArgument);
  EXPECT_THROW(tensor.write(std::vector<double>{1, 2}), InvalidArgument);
  std::vector<std::byte> memory(8);
  tensor.data = memory.data();
  tensor.spec.strides = {};
  EXPECT_THROW(tensor.read(), InvalidArgument);
  tensor.spec.strides = {-1};
  EXPECT_THROW(tensor.write(std::vector<double>{1, 2}), InvalidArgument);
}

// ---- a variant by name

TEST(Executor, TunesTheVariantThatTheCallNames) {
  const Context host = open_host();
  const Tensor input = host.upload(std::span<const float>(kValues), {1, 2, 4});
  const Executor named = Executor(host).with_variant("reference");
  const Executor tuning = named.with_policy({.autotune = true, .persist = false});
  EXPECT_NE(tuning.explain("sequence_mean", {{"input", input}}).execution.choice.origin,
            Tier::kAutotune)
      << "explaining tunes nothing";
  sequence_mean(tuning, input);
  EXPECT_EQ(host.last_execution().choice.tier, Tier::kOverride);
  EXPECT_EQ(host.last_execution().choice.origin, Tier::kAutotune);
  // Which says nothing about which variant is best.
  sequence_mean(host, input);
  EXPECT_EQ(host.last_execution().choice.origin, Tier::kHeuristics);
  const Problem problem = make_problem(find_operation("sequence_mean"), {input.spec()}, {});
  Case shape;
  shape.operands = {input.spec()};
  EXPECT_EQ(named.tune(shape, "sequence_mean").best->variant, "reference");
  EXPECT_THROW(Executor(host).with_variant("fastest").tune(shape, "sequence_mean"),
               InvalidArgument);
}

}  // namespace
}  // namespace tessera
