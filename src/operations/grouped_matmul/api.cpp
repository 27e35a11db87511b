// SPDX-License-Identifier: Apache-2.0
// The typed functions of grouped products.
#include <string>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "tessera/operations/grouped_matmul.hpp"

namespace tessera {
namespace {

Tensors operands(const Tensor& lhs, const Tensor& rhs, const Tensor& group_sizes) {
  return {{"lhs", lhs}, {"rhs", rhs}, {"group_sizes", group_sizes}};
}

// Of the options of either forward call.
void set_forward(Tensors& tensors, Options& values, const auto& options) {
  const auto add = [&](const char* name, const Tensor& tensor) {
    if (tensor) tensors.emplace(name, tensor);
  };
  add("existing_out", options.existing_out);
  add("scale_lhs", options.scale_lhs);
  add("scale_rhs", options.scale_rhs);
  if (options.output_dtype)
    values.emplace("output_dtype", std::string(to_string(*options.output_dtype)));
}

Tensor take(const Tensors& results, const char* name) {
  const auto found = results.find(name);
  return found == results.end() ? Tensor{} : found->second;
}

Options named(const GroupedMatmulOptions& options) {
  return {{"transpose_rhs", options.transpose_rhs}, {"group_offset", options.group_offset}};
}

}  // namespace

Tensor grouped_matmul(const Executor& on, const Tensor& lhs, const Tensor& rhs,
                      const Tensor& group_sizes, const GroupedMatmulOptions& options) try {
  Tensors tensors = operands(lhs, rhs, group_sizes);
  Options values = named(options);
  set_forward(tensors, values, options);
  return on.run("grouped_matmul", std::move(tensors), values).at("output");
} catch (...) {
  rethrow_as_error();
}

GroupedMatmulGradients grouped_matmul_backward(const Executor& on, const Tensor& lhs,
                                               const Tensor& rhs, const Tensor& group_sizes,
                                               const Tensor& grad_output,
                                               const GroupedMatmulOptions& options,
                                               const GroupedMatmulGradientOptions& wanted) try {
  Tensors tensors = operands(lhs, rhs, group_sizes);
  tensors.emplace("grad_output", grad_output);
  std::vector<std::string> outputs;
  if (wanted.lhs) outputs.emplace_back("grad_lhs");
  if (wanted.rhs) outputs.emplace_back("grad_rhs");
  if (wanted.existing_out && options.existing_out) outputs.emplace_back("grad_existing_out");
  const Tensors results =
      on.run("grouped_matmul_backward", std::move(tensors), named(options), outputs);
  return {.lhs = take(results, "grad_lhs"),
          .rhs = take(results, "grad_rhs"),
          .existing_out = take(results, "grad_existing_out")};
} catch (...) {
  rethrow_as_error();
}

Tensor transposed_grouped_matmul(const Executor& on, const Tensor& lhs, const Tensor& rhs,
                                 const Tensor& group_sizes,
                                 const TransposedGroupedMatmulOptions& options) try {
  Tensors tensors = operands(lhs, rhs, group_sizes);
  Options values{{"group_offset", options.group_offset}};
  if (options.groups) values.emplace("groups", *options.groups);
  set_forward(tensors, values, options);
  return on.run("transposed_grouped_matmul", std::move(tensors), values).at("output");
} catch (...) {
  rethrow_as_error();
}

TransposedGroupedMatmulGradients transposed_grouped_matmul_backward(
    const Executor& on, const Tensor& lhs, const Tensor& rhs, const Tensor& group_sizes,
    const Tensor& grad_output, const TransposedGroupedMatmulOptions& options,
    const TransposedGroupedMatmulGradientOptions& wanted) try {
  Tensors tensors = operands(lhs, rhs, group_sizes);
  tensors.emplace("grad_output", grad_output);
  std::vector<std::string> outputs;
  if (wanted.lhs) outputs.emplace_back("grad_lhs");
  if (wanted.rhs) outputs.emplace_back("grad_rhs");
  const Tensors results = on.run("transposed_grouped_matmul_backward", std::move(tensors),
                                 {{"group_offset", options.group_offset}}, outputs);
  return {.lhs = take(results, "grad_lhs"), .rhs = take(results, "grad_rhs")};
} catch (...) {
  rethrow_as_error();
}

namespace vjp {

struct GroupedMatmulPullback::State {
  Executor on;
  Tensor lhs, rhs, group_sizes;
  GroupedMatmulOptions options;
};

struct GroupedMatmulMaker {
  static GroupedMatmulResult make(const Executor& on, const Tensor& lhs, const Tensor& rhs,
                                  const Tensor& group_sizes, const GroupedMatmulOptions& options) {
    auto state = std::make_shared<GroupedMatmulPullback::State>(
        GroupedMatmulPullback::State{on, lhs, rhs, group_sizes, options});
    return {.output = tessera::grouped_matmul(on, lhs, rhs, group_sizes, options),
            .pullback = GroupedMatmulPullback(std::move(state))};
  }
};

GroupedMatmulGradients GroupedMatmulPullback::operator()(
    const Tensor& grad_output, const GroupedMatmulGradientOptions& wanted) const try {
  return grouped_matmul_backward(state_->on, state_->lhs, state_->rhs, state_->group_sizes,
                                 grad_output, state_->options, wanted);
} catch (...) {
  rethrow_as_error();
}

GroupedMatmulResult grouped_matmul(const Executor& on, const Tensor& lhs, const Tensor& rhs,
                                   const Tensor& group_sizes,
                                   const GroupedMatmulOptions& options) try {
  return GroupedMatmulMaker::make(on, lhs, rhs, group_sizes, options);
} catch (...) {
  rethrow_as_error();
}

struct TransposedGroupedMatmulPullback::State {
  Executor on;
  Tensor lhs, rhs, group_sizes;
  TransposedGroupedMatmulOptions options;
};

struct TransposedGroupedMatmulMaker {
  static TransposedGroupedMatmulResult make(const Executor& on, const Tensor& lhs,
                                            const Tensor& rhs, const Tensor& group_sizes,
                                            const TransposedGroupedMatmulOptions& options) {
    auto state = std::make_shared<TransposedGroupedMatmulPullback::State>(
        TransposedGroupedMatmulPullback::State{on, lhs, rhs, group_sizes, options});
    return {.output = tessera::transposed_grouped_matmul(on, lhs, rhs, group_sizes, options),
            .pullback = TransposedGroupedMatmulPullback(std::move(state))};
  }
};

TransposedGroupedMatmulGradients TransposedGroupedMatmulPullback::operator()(
    const Tensor& grad_output, const TransposedGroupedMatmulGradientOptions& wanted) const try {
  return transposed_grouped_matmul_backward(state_->on, state_->lhs, state_->rhs,
                                            state_->group_sizes, grad_output, state_->options,
                                            wanted);
} catch (...) {
  rethrow_as_error();
}

TransposedGroupedMatmulResult transposed_grouped_matmul(
    const Executor& on, const Tensor& lhs, const Tensor& rhs, const Tensor& group_sizes,
    const TransposedGroupedMatmulOptions& options) try {
  return TransposedGroupedMatmulMaker::make(on, lhs, rhs, group_sizes, options);
} catch (...) {
  rethrow_as_error();
}

}  // namespace vjp
}  // namespace tessera
