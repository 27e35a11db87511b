// SPDX-License-Identifier: Apache-2.0
// einsum: labels to the axes of one batched product.
#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/matmul.hpp"

namespace tessera {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw InvalidArgument("einsum: " + why); }

std::string quoted(char label) { return std::string("'") + label + "'"; }

struct Equation {
  std::string a{}, b{}, output{};
};

bool holds(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

std::string labels_of(std::string_view text) {
  std::string labels;
  for (const char c : text) {
    if (c == ' ') continue;
    if (c == '.') refuse("an ellipsis is not taken; every axis has a letter");
    if (std::isalpha(static_cast<unsigned char>(c)) == 0)
      refuse("'" + std::string(text) + "' holds " + quoted(c) + ", which is no letter");
    labels += c;
  }
  return labels;
}

Equation parse(std::string_view text) {
  const std::size_t arrow = text.find("->"), end = std::min(arrow, text.size());
  const std::string_view operands = text.substr(0, end);
  const std::size_t comma = operands.find(',');
  if (comma == std::string_view::npos || operands.find(',', comma + 1) != std::string_view::npos)
    refuse("'" + std::string(text) + "' does not name two operands, with a comma between");
  Equation equation{.a = labels_of(operands.substr(0, comma)),
                    .b = labels_of(operands.substr(comma + 1))};
  if (arrow != std::string_view::npos) {
    equation.output = labels_of(text.substr(arrow + 2));
    return equation;
  }
  const std::string all = equation.a + equation.b;
  for (const char label : all) {
    if (std::ranges::count(all, label) == 1) equation.output += label;
  }
  std::ranges::sort(equation.output);
  return equation;
}

enum Part : std::size_t { kOfA, kOfB, kOfOutput, kOfGradA, kOfGradB, kParts };

// Without gradients those of the operands stand in their places.
using Specs = std::array<TensorSpec, kParts>;

// An axis of the product: its extent, and its steps in each tensor; 0 where they lack it.
struct Axis {
  char label = 0;
  std::int64_t extent = 1;
  std::array<std::int64_t, kParts> steps{};
};

std::int64_t extent_of(const TensorSpec& spec, const std::string& labels, char label,
                       const char* name) {
  std::optional<std::int64_t> extent;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != label) continue;
    const std::int64_t own = spec.shape[i];
    if (extent.value_or(own) != own)
      refuse("label " + quoted(label) + " has extents " + std::to_string(*extent) + " and " +
             std::to_string(own) + " in " + name);
    extent = own;
  }
  return *extent;
}

std::int64_t step_of(const TensorSpec& spec, const std::string& labels, char label) {
  std::int64_t step = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) step += labels[i] == label ? spec.strides[i] : 0;
  return step;
}

// Neighbours of which the inner continues the outer, in all that have them, become one. The inner
// one is behind.
void join(std::vector<Axis>& axes) {
  std::erase_if(axes, [](const Axis& axis) { return axis.extent == 1; });
  for (std::size_t i = axes.size(); i-- > 1;) {
    Axis &outer = axes[i - 1], &inner = axes[i];
    bool joins = true;
    for (std::size_t part = 0; part < kParts; ++part)
      joins = joins && outer.steps[part] == inner.steps[part] * inner.extent;
    if (!joins) continue;
    inner.extent *= outer.extent;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i) - 1);
  }
}

// Longest steps of `part` first.
void order(std::vector<Axis>& axes, Part part) {
  std::ranges::stable_sort(axes, std::ranges::greater{},
                           [part](const Axis& axis) { return axis.steps[part]; });
  join(axes);
}

Axis take_last(std::vector<Axis>& axes) {
  if (axes.empty()) return {};
  const Axis last = axes.back();
  axes.pop_back();
  return last;
}

// An operand and its gradient repeat along the axes that both lack; what repeats in memory alone
// has a gradient for each of its elements.
bool repeats(const Axis& axis, Part part) {
  if (part == kOfOutput) return false;
  const bool of_a = part == kOfA || part == kOfGradA;
  return axis.steps[of_a ? kOfA : kOfB] == 0 && axis.steps[of_a ? kOfGradA : kOfGradB] == 0;
}

// [..., rows, columns] of one part of the product.
TensorSpec view(const TensorSpec& of, const std::vector<Axis>& leading, Part part, const Axis& rows,
                const Axis& columns) {
  TensorSpec spec{.dtype = of.dtype, .offset = of.offset};
  for (const Axis& axis : leading) {
    spec.shape.push_back(repeats(axis, part) ? 1 : axis.extent);
    spec.strides.push_back(axis.steps[part]);
  }
  for (const Axis* axis : {&rows, &columns}) {
    spec.shape.push_back(axis->extent);
    spec.strides.push_back(axis->steps[part]);
  }
  return spec;
}

DType output_type(const Tensor& a, std::optional<DType> wanted) {
  if (wanted) return *wanted;
  const DType own = a.dtype();
  return own == DType::kI8 ? DType::kI32 : bits_of(own) == 8 ? DType::kF32 : own;
}

void check_operands(const Equation& equation, const Tensor& a, const Tensor& b) {
  const auto check = [](const Tensor& tensor, const std::string& labels, const std::string& name) {
    if (!tensor) refuse(name + " is an empty tensor");
    if (tensor.shape().size() != labels.size())
      refuse(name + " " + tensor.spec().to_string() + " has not the axes '" + labels + "'");
  };
  check(a, equation.a, "a");
  check(b, equation.b, "b");
}

Shape shape_of(const Equation& equation, const TensorSpec& a, const TensorSpec& b) {
  Shape shape;
  for (std::size_t i = 0; i < equation.output.size(); ++i) {
    const char label = equation.output[i];
    const bool of_a = holds(equation.a, label);
    if (!of_a && !holds(equation.b, label))
      refuse("no operand has label " + quoted(label) + " of the output");
    if (equation.output.find(label) != i)
      refuse("the output has label " + quoted(label) + " twice");
    shape.push_back(of_a ? extent_of(a, equation.a, label, "a")
                         : extent_of(b, equation.b, label, "b"));
  }
  return shape;
}

Axis axis_of(const Equation& equation, const Specs& specs, char label) {
  const bool in_a = holds(equation.a, label), in_b = holds(equation.b, label);
  if (in_a != in_b && !holds(equation.output, label))
    refuse("label " + quoted(label) + " is in " + (in_a ? "a" : "b") +
           " alone and not in the output: a sum over one operand is no product");
  Axis axis{.label = label,
            .extent = in_a ? extent_of(specs[kOfA], equation.a, label, "a")
                           : extent_of(specs[kOfB], equation.b, label, "b")};
  const std::int64_t other = in_b ? extent_of(specs[kOfB], equation.b, label, "b") : axis.extent;
  if (other != axis.extent)
    refuse("label " + quoted(label) + " has extent " + std::to_string(axis.extent) + " in a and " +
           std::to_string(other) + " in b");
  const std::string* const labels[] = {&equation.a, &equation.b, &equation.output, &equation.a,
                                       &equation.b};
  for (std::size_t part = 0; part < kParts; ++part)
    axis.steps[part] = step_of(specs[part], *labels[part], label);
  return axis;
}

// The tensors as matmul and its gradients take them.
Specs views_of(const Equation& equation, const Specs& specs) {
  std::vector<Axis> rows, columns, terms, batches;
  std::string all = equation.a + equation.b;
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const char label : all) {
    const bool in_a = holds(equation.a, label), in_b = holds(equation.b, label);
    const bool kept = holds(equation.output, label);
    (!kept          ? terms
     : in_a && in_b ? batches
     : in_a         ? rows
                    : columns)
        .push_back(axis_of(equation, specs, label));
  }
  order(terms, kOfA);
  if (terms.size() > 1)
    refuse("the axes " + quoted(terms[0].label) + " and " + quoted(terms[1].label) +
           " that are summed do not lie one behind the other in both operands");
  order(rows, kOfOutput);
  order(columns, kOfOutput);
  const Axis m = take_last(rows), n = take_last(columns), k = take_last(terms);
  // What does not join rows or columns goes around the product.
  batches.insert(batches.end(), rows.begin(), rows.end());
  batches.insert(batches.end(), columns.begin(), columns.end());
  order(batches, kOfOutput);
  return {view(specs[kOfA], batches, kOfA, m, k), view(specs[kOfB], batches, kOfB, k, n),
          view(specs[kOfOutput], batches, kOfOutput, m, n),
          view(specs[kOfGradA], batches, kOfGradA, m, k),
          view(specs[kOfGradB], batches, kOfGradB, k, n)};
}

Tensor product(const Executor& on, const Equation& equation, const Tensor& a, const Tensor& b,
               std::optional<DType> output_dtype) {
  check_operands(equation, a, b);
  const Tensor output =
      on.context().empty(output_type(a, output_dtype), shape_of(equation, a.spec(), b.spec()));
  const Specs views = views_of(equation, {a.spec(), b.spec(), output.spec(), a.spec(), b.spec()});
  on.run("matmul",
         {{"a", {views[kOfA], a.buffer()}},
          {"b", {views[kOfB], b.buffer()}},
          {"output", {views[kOfOutput], output.buffer()}}},
         {{"output_dtype", std::string(to_string(output.dtype()))}});
  return output;
}

std::pair<Tensor, Tensor> gradients(const Executor& on, const Equation& equation, const Tensor& a,
                                    const Tensor& b, const Tensor& grad_output) {
  const Shape shape = shape_of(equation, a.spec(), b.spec());
  if (!grad_output || grad_output.shape() != shape)
    refuse("the gradient of the output is not of its shape, " +
           TensorSpec::contiguous(a.dtype(), shape).to_string());
  const Tensor grad_a = on.context().empty(a.dtype(), a.shape());
  const Tensor grad_b = on.context().empty(b.dtype(), b.shape());
  const Specs views =
      views_of(equation, {a.spec(), b.spec(), grad_output.spec(), grad_a.spec(), grad_b.spec()});
  on.run("matmul_backward", {{"a", {views[kOfA], a.buffer()}},
                             {"b", {views[kOfB], b.buffer()}},
                             {"grad_output", {views[kOfOutput], grad_output.buffer()}},
                             {"grad_a", {views[kOfGradA], grad_a.buffer()}},
                             {"grad_b", {views[kOfGradB], grad_b.buffer()}}});
  return {grad_a, grad_b};
}

bool takes_diagonal(const std::string& labels) {
  return std::ranges::any_of(labels,
                             [&](char label) { return std::ranges::count(labels, label) > 1; });
}

}  // namespace

Tensor einsum(const Executor& on, std::string_view equation, const Tensor& a, const Tensor& b,
              std::optional<DType> output_dtype) try {
  return product(on, parse(equation), a, b, output_dtype);
} catch (...) {
  rethrow_as_error();
}

namespace vjp {

struct EinsumPullback::State {
  Executor on;
  std::string of_a, of_b, of_output;  // labels
  Tensor a, b;
};

struct EinsumMaker {
  static EinsumResult make(const Executor& on, std::string_view text, const Tensor& a,
                           const Tensor& b, std::optional<DType> output_dtype) {
    const Equation equation = parse(text);
    auto state = std::make_shared<EinsumPullback::State>(
        EinsumPullback::State{on, equation.a, equation.b, equation.output, a, b});
    return {.output = product(on, equation, a, b, output_dtype),
            .pullback = EinsumPullback(std::move(state))};
  }
};

std::pair<Tensor, Tensor> EinsumPullback::operator()(const Tensor& grad_output) const try {
  const auto& [on, of_a, of_b, of_output, a, b] = *state_;
  if (takes_diagonal(of_a) || takes_diagonal(of_b))
    throw Unsupported("einsum: an operand whose diagonal was taken has no gradient here");
  return gradients(on, {.a = of_a, .b = of_b, .output = of_output}, a, b, grad_output);
} catch (...) {
  rethrow_as_error();
}

EinsumResult einsum(const Executor& on, std::string_view equation, const Tensor& a, const Tensor& b,
                    std::optional<DType> output_dtype) try {
  return EinsumMaker::make(on, equation, a, b, output_dtype);
} catch (...) {
  rethrow_as_error();
}

}  // namespace vjp
}  // namespace tessera
