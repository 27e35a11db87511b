// SPDX-License-Identifier: Apache-2.0
#include "conformance/large.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/system/parallel.hpp"
#include "conformance/device.hpp"
#include "tessera/context.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera::testing {
namespace {

constexpr std::int64_t kQueries = 16, kKeys = 1024, kDim = 128;
constexpr std::int64_t kBatchElements = kKeys * kDim;  // of keys
constexpr std::int64_t kBytes = std::int64_t{6} << 30;

// Batches whose keys take 6 GiB: more elements of 16 bits than an int counts.
std::int64_t batches_of(DType dtype) {
  return kBytes / static_cast<std::int64_t>(size_of(dtype)) / kBatchElements;
}

struct Sizes {
  std::string operation;
  DType dtype;

  bool backward() const { return operation == "flash_attention_backward"; }
  // Keys, values and their gradients, with room for what kernels need besides.
  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(batches_of(dtype) * kBatchElements) * size_of(dtype) *
           (backward() ? 5 : 3);
  }
};

class LargeCalls {
 public:
  explicit LargeCalls(const Context& context) : context_(context) {}

  // One line for each variant.
  void check(const Sizes& sizes) {
    const std::int64_t batches = batches_of(sizes.dtype);
    const std::array<std::int64_t, 3> some{0, batches / 2 + 1, batches - 1};
    std::vector<std::int64_t> all(static_cast<std::size_t>(batches));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    const Tensors large = inputs(sizes, all);
    const Tensors small = inputs(sizes, some);
    const Operation& operation = find_operation(sizes.operation);
    for (const Variant& variant : operation.variants) {
      if (std::ranges::find(variant.dtypes, sizes.dtype) == variant.dtypes.end()) continue;
      const std::string name = sizes.operation + '.' + variant.name + '/' +
                               std::string(to_string(sizes.dtype)) + ", " +
                               std::to_string(batches * kBatchElements) + " elements";
      run(variant, name, sizes, {}, large, small, some);
    }
  }

  // Rows that end beyond 6 GiB of one sequence, of which a window sees the last ones.
  void check_long_sequence() {
    const Sizes sizes{"flash_attention", DType::kF16};
    const std::int64_t batches = batches_of(sizes.dtype);
    std::vector<std::int64_t> all(static_cast<std::size_t>(batches));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    const std::array<std::int64_t, 2> last{batches - 2, batches - 1};
    const std::array<std::int64_t, 1> one{0};
    const auto call = [&](std::span<const std::int64_t> of) {
      const Shape shape{1, static_cast<std::int64_t>(of.size()) * kKeys, 1, kDim};
      return Tensors{{"query", rows(sizes, one, kQueries, 0)},
                     {"key", rows(sizes, of, kKeys, 1).reshape(shape)},
                     {"value", rows(sizes, of, kKeys, 2).reshape(shape)}};
    };
    const Options options{{"causal", true},
                          {"causal_alignment", std::string("bottom_right")},
                          {"sliding_window", std::vector<std::int64_t>{1000, 0}}};
    const Tensors large = call(all), small = call(last);
    for (const Variant& variant : find_operation(sizes.operation).variants) {
      if (std::ranges::find(variant.dtypes, sizes.dtype) == variant.dtypes.end()) continue;
      const std::string name =
          variant.name + ", a sequence of " + std::to_string(large.at("key").dim(1)) + " keys";
      run(variant, name, sizes, options, large, small, one);
    }
  }

  // What kernels do not count is refused; asking for it takes no memory.
  void check_refusal(const Sizes& sizes) {
    const bool wide = context_.device().backend == Backend::kOpenCL;
    const std::int64_t batches = (std::int64_t{1} << 31) / kBatchElements + 1;
    const auto spec = [&](std::int64_t rows) {
      TensorSpec result = TensorSpec::contiguous(sizes.dtype, {batches, rows, 1, kDim});
      if (wide) result.strides[0] = std::int64_t{1} << 32;
      return result;
    };
    const Operation& operation = find_operation(sizes.operation);
    std::vector<std::optional<TensorSpec>> operands(operation.operands.size());
    for (std::size_t slot = 0; slot < operands.size(); ++slot) {
      const std::string& name = operation.operands[slot].name;
      if (name == "query" || name == "output" || name == "output_gradient")
        operands[slot] = spec(kQueries);
      if (name == "key" || name == "value") operands[slot] = spec(kKeys);
      if (name == "log_sum_exp" && sizes.backward())
        operands[slot] = TensorSpec::contiguous(DType::kF32, {batches, 1, kQueries});
    }
    try {
      Executor(context_).plan(make_problem(operation, operands, {}));
      std::printf("  FAILED %s/%s: took more than kernels count\n", sizes.operation.c_str(),
                  std::string(to_string(sizes.dtype)).c_str());
      ++failed_;
    } catch (const Unsupported& error) {
      const std::string why = error.what();
      const bool is_told = why.find("count to 2^") != std::string::npos;
      if (!is_told) std::printf("  FAILED %s: %s\n", sizes.operation.c_str(), why.c_str());
      ++(is_told ? refused_ : failed_);
    } catch (const Error& error) {
      std::printf("  FAILED %s: %s\n", sizes.operation.c_str(), error.what());
      ++failed_;
    }
  }

  int exit_code() const {
    std::printf("large: %zu passed, %zu failed, %zu refused\n", passed_, failed_, refused_);
    return failed_ == 0 && passed_ > 0 ? 0 : 1;
  }

 private:
  // The outputs of `batches` of the large call must be those of the small one.
  void run(const Variant& variant, const std::string& name, const Sizes& sizes,
           const Options& options, const Tensors& large, const Tensors& small,
           std::span<const std::int64_t> batches) {
    std::string failure;
    try {
      const Executor executor = Executor(context_).with_variant(variant.name);
      const Tensors outputs = executor.run(sizes.operation, large, options);
      const Choice choice = context_.last_execution().choice;
      const Tensors expected =
          executor.with_config(choice.config).run(sizes.operation, small, options);
      failure = difference(outputs, expected, batches);
    } catch (const Unsupported& error) {
      std::printf("  refused %s: %s\n", name.c_str(), error.what());
      ++refused_;
      return;
    } catch (const Error& error) {
      failure = error.what();
    }
    std::printf("  %s %s%s%s\n", failure.empty() ? "passed" : "FAILED", name.c_str(),
                failure.empty() ? "" : ": ", failure.c_str());
    ++(failure.empty() ? passed_ : failed_);
  }

  // Numbers of a batch depend on the batch and the operand alone.
  Tensor rows(const Sizes& sizes, std::span<const std::int64_t> batches, std::int64_t rows,
              std::size_t operand) const {
    const auto size = static_cast<std::size_t>(rows * kDim) * size_of(sizes.dtype);
    const std::vector<std::byte>& pool = pool_of(sizes.dtype);
    std::vector<std::byte> bytes(batches.size() * size);
    parallel_for(batches.size(), [&](std::size_t n) {
      const auto start =
          (static_cast<std::size_t>(batches[n]) * 2654435761U + operand * 40503U) % kPoolElements;
      std::memcpy(bytes.data() + n * size, pool.data() + start * size_of(sizes.dtype), size);
    });
    return context_.upload_bytes(bytes, sizes.dtype,
                                 {static_cast<std::int64_t>(batches.size()), rows, 1, kDim});
  }

  Tensors inputs(const Sizes& sizes, std::span<const std::int64_t> batches) const {
    Tensors tensors{{"query", rows(sizes, batches, kQueries, 0)},
                    {"key", rows(sizes, batches, kKeys, 1)},
                    {"value", rows(sizes, batches, kKeys, 2)}};
    if (sizes.backward()) {
      // Of any output: the same numbers in both calls are all that counts.
      tensors.emplace("output", rows(sizes, batches, kQueries, 3));
      tensors.emplace("output_gradient", rows(sizes, batches, kQueries, 4));
      const std::vector<float> log_sum_exp(batches.size() * kQueries, 8.0F);
      tensors.emplace(
          "log_sum_exp",
          context_.upload(log_sum_exp, {static_cast<std::int64_t>(batches.size()), 1, kQueries}));
    }
    return tensors;
  }

  // Where rows of `batches` in the large outputs differ from the small ones.
  std::string difference(const Tensors& large, const Tensors& small,
                         std::span<const std::int64_t> batches) const {
    for (const auto& [name, tensor] : small) {
      const std::vector<std::byte> expected = context_.download_bytes(tensor);
      const std::vector<std::byte> found = context_.download_bytes(large.at(name));
      const std::size_t size = expected.size() / batches.size();
      for (std::size_t n = 0; n < batches.size(); ++n) {
        const auto at = static_cast<std::size_t>(batches[n]) * size;
        if (std::memcmp(found.data() + at, expected.data() + n * size, size) != 0)
          return name + " of batch " + std::to_string(batches[n]) + " has other bits";
      }
    }
    return "";
  }

  static constexpr std::size_t kPoolElements = std::size_t{1} << 20;
  // Normal numbers, with a batch of keys more than where batches start.
  static const std::vector<std::byte>& pool_of(DType dtype) {
    static std::map<DType, std::vector<std::byte>> pools;
    std::vector<std::byte>& pool = pools[dtype];
    if (pool.empty()) {
      std::mt19937_64 random(7);
      std::normal_distribution<double> normal;
      pool.resize((kPoolElements + kBatchElements) * size_of(dtype));
      std::vector<double> values(kPoolElements + kBatchElements);
      for (double& value : values) value = normal(random);
      HostTensor{.spec = TensorSpec::contiguous(dtype, {static_cast<std::int64_t>(values.size())}),
                 .data = pool.data()}
          .write(values);
    }
    return pool;
  }

  Context context_;
  std::size_t passed_ = 0, failed_ = 0, refused_ = 0;
};

}  // namespace

int run_large(const std::string& selector) {
  const auto device = first_device(selector);
  if (!device) return kNoDevice;
  const Context context = Context::open({.device = std::to_string(device->index)});
  const DeviceProfile& profile = context.device();
  std::printf("%s\n", tessera::summary(profile).c_str());
  LargeCalls calls(context);
  bool any = false;
  for (const char* operation : {"flash_attention", "flash_attention_backward"}) {
    for (const DType dtype : {DType::kF32, DType::kF16}) {
      const Sizes sizes{operation, dtype};
      const std::uint64_t tensor = sizes.bytes() / (sizes.backward() ? 5 : 3);
      if (is_cpu(profile) || profile.global_memory < sizes.bytes() ||
          profile.max_allocation < tensor) {
        std::printf("  skipped %s/%s: takes %llu bytes of a GPU's memory, %llu in one buffer\n",
                    operation, std::string(to_string(dtype)).c_str(),
                    static_cast<unsigned long long>(sizes.bytes()),
                    static_cast<unsigned long long>(tensor));
        continue;
      }
      any = true;
      calls.check(sizes);
      calls.check_refusal(sizes);
      if (sizes.dtype == DType::kF16 && !sizes.backward()) calls.check_long_sequence();
    }
  }
  return any ? calls.exit_code() : kNoDevice;
}

}  // namespace tessera::testing
