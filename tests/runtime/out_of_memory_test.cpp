// SPDX-License-Identifier: Apache-2.0
// Everything that Tessera throws is an Error: each public function is called again and again, and
// every time one allocation more succeeds before the next one fails, until none does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <new>
#include <typeinfo>

#include "runtime/context_state.hpp"
#include "support/fake_operation.hpp"
#include "support/messages.hpp"
#include "tessera/tessera.hpp"

namespace {

// Of this thread: allocations until one fails, below 0 = none does, and the bytes of all of them.
thread_local long allocations_left = -1;
thread_local std::size_t bytes_allocated = 0;

}  // namespace

// In place of the standard library's, for all of this program. Not inlined: compilers warn where
// they see memory of `new` freed.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  bytes_allocated += bytes;
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace tessera {
namespace {

// A call, made from what was got ready before it: memory fails from `start()` on.
using Call = std::function<void(const std::function<void()>& start)>;

void expect_errors(const std::string& name, const Call& call) {
  bool failed = true;
  // Most calls are through after fewer; of long ones some are left out.
  for (long n = 0; failed && n < 200000; n += 1 + n / 40) {
    failed = false;
    try {
      call([&] { allocations_left = n; });
      allocations_left = -1;
    } catch (const Error& error) {
      failed = allocations_left < 0;
      allocations_left = -1;
      EXPECT_STRNE(error.what(), "");
    } catch (const std::exception& other) {
      allocations_left = -1;
      ADD_FAILURE() << name << ", allocation " << n << ": " << typeid(other).name();
      return;
    }
  }
  EXPECT_FALSE(failed) << name;
}

void expect_errors(const std::string& name, const std::function<void()>& call) {
  expect_errors(name, [&](const std::function<void()>& start) {
    start();
    call();
  });
}

const char* const kLong = "a name that is too long for a string without memory of its own";

TEST(OutOfHostMemory, TypesAndNames) {
  expect_errors("bits_of", [] { bits_of(static_cast<DType>(99)); });
  expect_errors("size_of", [] { size_of(DType::kI4); });
  expect_errors("parse_dtype", [] { parse_dtype(kLong); });
  expect_errors("parse_precision", [] { parse_precision(kLong); });
  const OptionValue list = std::vector<std::int64_t>(100, 1 << 20);
  expect_errors("to_string", [&] { to_string(list); });
  expect_errors("parse_option", [&] { parse_option(kLong, kLong, list); });
  expect_errors("StorageTypes", [](const auto& start) {
    std::string name(kLong);
    std::vector<std::pair<std::string, DType>> operands{{kLong, DType::kI4}};
    start();
    StorageTypes(std::move(name), std::move(operands)).to_string();
  });
  expect_errors("StorageTypes without operands", [] { StorageTypes("none", {}); });
  expect_errors("Config", [] { Config::parse("BLOCK_OF_ROWS_AND_KEYS=96,WG_X=1").to_string(); });
  expect_errors("Config::at", [] { Config().at(kLong); });
  expect_errors("parse_full_name", [] { parse_full_name(kLong); });
}

TEST(OutOfHostMemory, Tensors) {
  const Context host = Context::open({.device = "host", .cache_directory = ""});
  const std::vector<float> values(24, 1.0F);
  const Tensor tensor = host.upload(values, {2, 3, 4});
  const auto with_shape = [](Shape shape, const auto& call) {
    return Call([shape, call](const std::function<void()>& start) {
      Shape copy = shape;
      start();
      call(std::move(copy));
    });
  };
  expect_errors("contiguous", with_shape({2, 3}, [](Shape shape) {
                  TensorSpec::contiguous(DType::kF32, std::move(shape));
                }));
  expect_errors("contiguous", with_shape({2, -3}, [](Shape shape) {
                  TensorSpec::contiguous(DType::kF32, std::move(shape));
                }));
  const TensorSpec bad{.shape = {-1}, .strides = {1}};
  expect_errors("elements", [&] { bad.elements(); });
  expect_errors("last_element", [&] { bad.last_element(); });
  expect_errors("dim", [&] { tensor.dim(7); });
  const std::vector<int> axes{2, 0, 1};
  expect_errors("permute", [&] { tensor.permute(axes); });
  expect_errors("to_string", [&] { tensor.spec().to_string(); });
  expect_errors("slice", [&] { tensor.slice(1, 0, 2); });
  expect_errors("reshape", with_shape({24}, [&](Shape s) { tensor.reshape(std::move(s)); }));
  expect_errors("empty", with_shape({24}, [&](Shape s) { host.empty(DType::kF32, std::move(s)); }));
  expect_errors("upload", with_shape({24}, [&](Shape s) { host.upload(values, std::move(s)); }));
  const Tensor view = tensor.permute({2, 0, 1});
  expect_errors("download", [&] { host.download<float>(view); });
  expect_errors("download_bytes", [&] { host.download_bytes(view); });
  expect_errors("read and write", [&](const auto& start) {
    std::vector<float> memory(24);
    HostTensor of_host{.spec = TensorSpec::contiguous(DType::kF32, {24}),
                       .data = reinterpret_cast<std::byte*>(memory.data())};
    start();
    of_host.write(of_host.read());
  });
}

// A view is gathered from the bytes between its first and last element, and no list of places.
TEST(Downloads, TakeTwiceTheMemoryOfAView) {
  const Context host = Context::open({.device = "host", .cache_directory = ""});
  const std::vector<std::uint8_t> values(1 << 16, 7);
  const Tensor view = host.upload(values, {1 << 8, 1 << 8}).permute({1, 0});
  bytes_allocated = 0;
  host.download_bytes(view);
  EXPECT_LT(bytes_allocated, 2 * values.size() + 4096);
}

TEST(Downloads, RowsOfPackedViewsBeginWithAByte) {
  const Context host = Context::open({.device = "host", .cache_directory = ""});
  const std::vector<std::byte> rows{std::byte{0x21}, std::byte{0x03}, std::byte{0x54},
                                    std::byte{0x06}, std::byte{0x87}, std::byte{0x09}};
  const Tensor tensor = host.upload_bytes(rows, DType::kU4, {3, 1, 3});
  const std::vector<std::byte> swapped = host.download_bytes(tensor.permute({1, 0, 2}));
  EXPECT_EQ(swapped, rows);
  const std::vector<std::byte> last = host.download_bytes(tensor.slice(0, 1, 3).slice(2, 0, 1));
  EXPECT_EQ(last, (std::vector<std::byte>{std::byte{0x04}, std::byte{0x07}}));
}

TEST(OutOfHostMemory, DevicesAndRecords) {
  const Probe& probe = probe_devices();
  expect_errors("select_devices",
                [&] { select_devices(probe, "vulkan:a device:that is not:there"); });
  const DeviceProfile& profile = probe.devices.back().profile;
  expect_errors("summary", [&] { summary(profile); });
  expect_errors("quirks_of", [&] { quirks_of(profile); });
  expect_errors("MatrixShape", [] { to_string(MatrixShape{.m = 1U << 31}); });
  expect_errors("all_operations", [] { all_operations(); });
  expect_errors("find_operation", [] { find_operation(kLong); });
  expect_errors("slot", [] { find_operation("sequence_mean").slot(kLong); });
  expect_errors("register_operation", [](const auto& start) {
    Operation operation = testing::fake_operation();
    operation.name = "no identifier";
    start();
    register_operation(std::move(operation));
  });
  expect_errors("register_variant", [](const auto& start) {
    Variant variant{.name = "none"};
    start();
    register_variant(kLong, std::move(variant));
  });
  const Problem problem = testing::fake_problem(5);
  expect_errors("option", [&] { problem.option(kLong); });
  expect_errors("details", [&] { problem.as<int>(); });
  expect_errors("full_name", [&] {
    full_name(*problem.operation, problem.operation->variants.front(), {}, DType::kF32, profile);
  });
  expect_errors("make_problem", [&](const auto& start) {
    std::vector<std::optional<TensorSpec>> operands = problem.operands;
    start();
    make_problem(*problem.operation, std::move(operands), {});
  });
}

TEST(OutOfHostMemory, ContextsAndExecutors) {
  expect_errors("open", [](const auto& start) {
    const ContextOptions options{.device = "host", .cache_directory = ""};
    start();
    Context::open(options);
  });
  const Context host = Context::open({.device = "host", .cache_directory = ""});
  expect_errors("fingerprint", [&] { host.fingerprint(); });
  expect_errors("create_stream", [&] { Executor(host).on(host.create_stream()); });
  expect_errors("last_execution", [&] { host.last_execution(); });
  expect_errors("on_event", [&] { host.on_event([&host](const Event&) { host.synchronize(); }); });
  host.on_event({});
  expect_errors("ScopedPolicy", [] { ScopedPolicy scope(current_policy()); });
  expect_errors("ScopedPrecision", [] { ScopedPrecision scope(Precision::kHigh); });
  expect_errors("ScopedOverlay", [](const auto& start) {
    std::vector<OverlayEntry> entries(1, {.operation = kLong});
    start();
    ScopedOverlay scope(std::move(entries));
  });
  const Executor on(host);
  expect_errors("with", [&] {
    on.with_policy({}).with_precision(Precision::kHigh).with_errors(ErrorLog(host, 4));
  });
  expect_errors("with_variant", [&](const auto& start) {
    std::string variant(kLong);
    Config config{{kLong, 1}};
    std::vector<Tier> tiers{Tier::kMemory};
    start();
    on.with_variant(std::move(variant)).with_config(std::move(config)).with_tiers(std::move(tiers));
  });
  expect_errors("ErrorLog", [&] {
    const ErrorLog log(host, 4);
    log.clear();
    check_errors(log);
  });
  const Tensors inputs{{"input", host.upload(std::vector<float>(24, 1.0F), {2, 3, 4})}};
  expect_errors("explain", [&] { on.explain("sequence_mean", inputs); });
  expect_errors("run", [&] { on.run("sequence_mean", inputs); });
  expect_errors("run of a new context", [&](const auto& start) {
    const Context fresh = Context::open({.device = "host", .cache_directory = ""});
    const Tensors its{{"input", fresh.upload(std::vector<float>(24, 1.0F), {2, 3, 4})}};
    start();
    Executor(fresh).run("sequence_mean", its);
  });
}

TEST(OutOfHostMemory, TypedFunctions) {
  const Context host = Context::open({.device = "host", .cache_directory = ""});
  const Executor on(host);
  const Tensor x = host.upload(std::vector<float>(2 * 3 * 2 * 4, 0.5F), {2, 3, 2, 4});
  const Tensor m = host.upload(std::vector<float>(16, 0.5F), {4, 4});
  expect_errors("flash_attention", [&] { flash_attention(on, x, x, x); });
  expect_errors("attention", [&] { attention(on, x, x, x); });
  expect_errors("scaled_dot_product", [&] { scaled_dot_product_attention(on, x, x, x); });
  expect_errors("its gradients", [&] { vjp::flash_attention(on, x, x, x).pullback(x, {}); });
  expect_errors("with_mask", [&](const auto& start) {
    const MaskSpec mask = MaskSpec::random(2, 3, 3).with_q_lengths({2, 3});
    start();
    with_mask(host, mask);
  });
  expect_errors("means", [&] {
    sequence_mean_backward(on, sequence_mean(on, x), 3);
    chunk_mean_backward(on, chunk_mean(on, x, {.chunk = 2}), 3, {.chunk = 2});
  });
  const std::vector<std::int32_t> starts{0, 3, 9};
  expect_errors("chunk_offsets", [&] { chunk_offsets(starts, 2); });
  expect_errors("norms", [&] {
    rms_norm(on, m);
    vjp::layer_norm(on, m).pullback(m);
  });
  expect_errors("quantised norms", [&] { layer_norm_forward(on, m, {.quantise = DType::kI8}); });
  expect_errors("a quantised output alone", [&] { rms_norm(on, m, {.quantise = DType::kI8}); });
  expect_errors("matmul", [&] { vjp::matmul(on, m, m).pullback(m); });
  expect_errors("einsum", [&] { vjp::einsum(on, "ab,bc->ac", m, m).pullback(m); });
  expect_errors("linear", [&] { vjp::linear(on, m, m).pullback(m); });
  const MlpWeights weights{.w1 = m, .b1 = {}, .w2 = m, .b2 = {}};
  expect_errors("fused_mlp", [&](const auto& start) {
    start();
    vjp::fused_mlp(on, m, weights, MatmulActivation::kNone).pullback(m);
  });
}

}  // namespace
}  // namespace tessera
