// SPDX-License-Identifier: Apache-2.0
// The records of selective_scan, and its typed functions.
#include <string>
#include <utility>
#include <vector>

#include "base/system/out_of_memory.hpp"
#include "operations/common/gradients.hpp"
#include "operations/selective_scan/call.hpp"
#include "tessera/operations/selective_scan.hpp"

namespace tessera {
namespace operations::state_space {
namespace {

const std::vector<DType> kFloats{DType::kF32, DType::kF16, DType::kBF16};
constexpr const char* kRows = "[batch, seq, dim]";
constexpr const char* kFactors = "[batch, seq, groups, state]";
constexpr const char* kStates = "[sequences, dim, state]";

std::vector<Operand> inputs() {
  constexpr const char* kChannels = "in the dtype of u or in f32";
  return {{.name = "u", .shape = kRows, .dtypes = kFloats},
          {.name = "delta", .shape = kRows, .dtypes = kFloats, .doc = "steps"},
          {.name = "a", .shape = "[dim, state]", .dtypes = kFloats, .doc = kChannels},
          {.name = "b", .shape = kFactors, .dtypes = kFloats},
          {.name = "c", .shape = kFactors, .dtypes = kFloats},
          {.name = "d", .optional = true, .shape = "[dim]", .dtypes = kFloats, .doc = kChannels},
          {.name = "z", .optional = true, .shape = kRows, .dtypes = kFloats, .doc = "gates"},
          {.name = "delta_bias",
           .optional = true,
           .shape = "[dim]",
           .dtypes = kFloats,
           .doc = kChannels},
          {.name = "initial_state",
           .optional = true,
           .shape = kStates,
           .dtypes = {DType::kF32},
           .doc = "0 where it is left out"},
          cu_seqlens_operand()};
}

std::vector<Operand> operands_of(bool backward) {
  std::vector<Operand> list = inputs();
  if (!backward) {
    list.push_back({.name = "output",
                    .role = Role::kOutput,
                    .shape = kRows,
                    .dtypes = kFloats,
                    .doc = "0 for tokens of no sequence"});
    list.push_back({.name = "final_state",
                    .role = Role::kOutput,
                    .optional = true,
                    .shape = kStates,
                    .dtypes = {DType::kF32},
                    .doc = "the state after the last token"});
    return list;
  }
  list.push_back({.name = "grad_output", .shape = kRows, .dtypes = kFloats});
  list.push_back({.name = "grad_final_state",
                  .optional = true,
                  .shape = kStates,
                  .dtypes = {DType::kF32},
                  .doc = "0 where it is left out"});
  for (const auto& [gradient, operand] : kScanGradients)
    list.push_back(gradient_operand(list[operand]));
  return list;
}

Operation new_scan_record(bool backward) {
  Operation operation;
  operation.operands = operands_of(backward);
  operation.options = {{.name = "delta_softplus",
                        .fallback = false,
                        .type = "bool",
                        .doc = "steps are log(1 + exp(delta + delta_bias))"}};
  operation.errors = boundary_errors();
  operation.validate = [backward](Problem& problem) { validate_scan(problem, backward); };
  operation.reference = reference_scan;
  operation.raises = raises_scan;
  add_ways(operation, list_of(scan_cpu_way(backward), scan_tile_way(backward)));
  operation.workload = scan_workload(backward);
  return operation;
}

}  // namespace

std::vector<Operation> selective_scan() {
  Operation forward = new_scan_record(false);
  forward.name = "selective_scan";
  forward.summary = "state space model whose step, input and output depend on the token";
  forward.formula =
      "h_t[n] = exp(step_t a[n]) h_(t-1)[n] + step_t b_t[n] u_t; output_t = (sum_n c_t[n] h_t[n] + "
      "d "
      "u_t) silu(z_t); step_t = delta_t + delta_bias, or softplus of it";
  Operation backward = new_scan_record(true);
  backward.name = "selective_scan_backward";
  backward.summary = "gradients of selective_scan";
  backward.formula =
      "D_t = r_t c_t + exp(step_(t+1) a) D_(t+1), r_t = grad_output_t silu(z_t); X_t = D_t "
      "exp(step_t "
      "a) h_(t-1); grad_u_t = d r_t + step_t sum b_t D_t; grad_b_t = sum step_t u_t D_t; grad_c_t "
      "= "
      "sum r_t h_t; grad_a = sum step_t X_t; grad_delta_t = (u_t sum b_t D_t + sum a X_t) "
      "softplus'";
  return list_of(std::move(forward), std::move(backward));
}

}  // namespace operations::state_space

namespace {

Tensors operands(const Tensor& u, const Tensor& delta, const Tensor& a, const Tensor& b,
                 const Tensor& c, const SelectiveScanOptions& options) {
  Tensors tensors{{"u", u}, {"delta", delta}, {"a", a}, {"b", b}, {"c", c}};
  operations::add_operand(tensors, "d", options.d);
  operations::add_operand(tensors, "z", options.z);
  operations::add_operand(tensors, "delta_bias", options.delta_bias);
  operations::add_operand(tensors, "initial_state", options.initial_state);
  operations::add_operand(tensors, "cu_seqlens", options.cu_seqlens);
  return tensors;
}

}  // namespace

SelectiveScanResult selective_scan(const Executor& on, const Tensor& u, const Tensor& delta,
                                   const Tensor& a, const Tensor& b, const Tensor& c,
                                   const SelectiveScanOptions& options) try {
  return operations::run_with_state<SelectiveScanResult>(
      on, "selective_scan", operands(u, delta, a, b, c, options),
      {{"delta_softplus", options.delta_softplus}}, options.final_state);
} catch (...) {
  rethrow_as_error();
}

SelectiveScanGradients selective_scan_backward(const Executor& on, const Tensor& u,
                                               const Tensor& delta, const Tensor& a,
                                               const Tensor& b, const Tensor& c,
                                               const Tensor& grad_output,
                                               const SelectiveScanOptions& options,
                                               const SelectiveScanGradientOptions& wanted) try {
  SelectiveScanGradients gradients;
  const operations::WantedGradient all[] = {
      {"u", wanted.u, &gradients.u},
      {"delta", wanted.delta, &gradients.delta},
      {"a", wanted.a, &gradients.a},
      {"b", wanted.b, &gradients.b},
      {"c", wanted.c, &gradients.c},
      {"d", wanted.d, &gradients.d},
      {"z", wanted.z, &gradients.z},
      {"delta_bias", wanted.delta_bias, &gradients.delta_bias},
      {"initial_state", wanted.initial_state, &gradients.initial_state}};
  operations::run_gradients(on, "selective_scan_backward", operands(u, delta, a, b, c, options),
                            grad_output, wanted.grad_final_state,
                            {{"delta_softplus", options.delta_softplus}}, all);
  return gradients;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
