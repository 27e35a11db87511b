// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul_core/product.hpp"

#include <algorithm>
#include <utility>

#include "base/tensors/checked.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::matmul {
namespace {

constexpr std::uint64_t kOnes = 4;                  // floats at the beginning of scratch
constexpr std::uint64_t kRoundedStart = 2 * kOnes;  // behind them, in elements of 16 bits

const MatmulProblem& call_of(const Problem& problem) { return problem.as<MatmulProblem>(); }

// Puts together a product before its axes are joined: matrices, and what they are around.
class Builder {
 public:
  Builder(const Problem& problem, const Stage& stage, std::int64_t m, std::int64_t n,
          std::int64_t k)
      : problem_(problem), call_(call_of(problem)), stage_(stage) {
    product_.m = m;
    product_.n = n;
    product_.k = k;
    for (const std::int64_t extent : call_.batch) product_.axes.push_back({.size = extent});
  }

  // An operand in its slot, [..., rows, columns] or, turned, [..., columns, rows]; axes of extent 1
  // repeat.
  void add(Role role, std::size_t slot, bool turned = false) {
    if (!problem_.has(slot)) return;
    const TensorSpec& spec = problem_.spec(slot);
    const std::size_t rank = spec.shape.size();
    const auto step = [&](std::size_t from_right) {
      return from_right < rank && spec.shape[rank - 1 - from_right] != 1
                 ? spec.strides[rank - 1 - from_right]
                 : 0;
    };
    View& view = product_.views[role];
    view = {.present = true,
            .dtype = spec.dtype,
            .offset = spec.offset,
            .row = step(1),
            .column = step(0)};
    if (turned) std::swap(view.row, view.column);
    for (std::size_t i = 0; i < call_.batch.size(); ++i)
      product_.axes[call_.batch.size() - 1 - i].steps[role] = step(2 + i);
  }

  // The gradient of the sums, [m, columns], or turned: in scratch or that of the output.
  void add_gradient(Role role, bool turned) {
    if (!stage_.shaped) {
      add(role, call_.slots.grad_output, turned);
      return;
    }
    View& view = product_.views[role];
    const bool rounds = stage_.rounds && problem_.dtype != DType::kF32;
    view = {.present = true,
            .dtype = rounds ? problem_.dtype : DType::kF32,
            .offset = static_cast<std::int64_t>(rounds ? kRoundedStart : kOnes),
            .row = call_.columns,
            .column = 1};
    if (turned) std::swap(view.row, view.column);
    std::int64_t step = call_.m * call_.columns;
    for (std::size_t i = call_.batch.size(); i-- > 0;) {
      product_.axes[i].steps[role] = step;
      step *= call_.batch[i];
    }
  }

  // A scale, with one element for all rows or terms, for each, or for blocks of them.
  void add_scale(Role role, std::size_t slot, bool turned, const Scaling& scaling) {
    if (!problem_.has(slot)) return;
    add(role, slot, turned);
    if (scaling.blocks)
      (role == kScaleA ? product_.scale_rows : product_.scale_columns) = MATMUL_BLOCK;
    if (scaling.terms) product_.blocks = MATMUL_BLOCKS_SCALED;
  }

  void add_ones(Role role) { product_.views[role] = {.present = true}; }

  // Batches along which an operand repeats are added up in its gradient.
  void sum_repeated(std::size_t slot) {
    const Shape& shape = problem_.spec(slot).shape;
    for (std::size_t i = 0; i < call_.batch.size(); ++i) {
      const bool has = shape.size() > 2 + i && shape[shape.size() - 3 - i] != 1;
      product_.axes[call_.batch.size() - 1 - i].summed |= !has;
    }
  }

  // Rows of a matrix become an axis around it.
  void add_axis(std::int64_t size, bool summed, Role role, std::int64_t step) {
    OuterAxis axis{.size = size, .summed = summed};
    axis.steps[role] = step;
    product_.axes.push_back(axis);
  }

  Product& product() { return product_; }

 private:
  const Problem& problem_;
  const MatmulProblem& call_;
  const Stage& stage_;
  Product product_{};
};

bool joins(const OuterAxis& outer, const OuterAxis& inner) {
  if (outer.summed != inner.summed) return false;
  for (std::size_t role = 0; role < kRoles; ++role) {
    if (outer.steps[role] != inner.steps[role] * inner.size) return false;
  }
  return true;
}

bool has_rows(std::size_t role) { return role != kB && role != kScaleB; }

// Rows of the next batch that continue those of this one, and share b.
bool continues_rows(const Product& product, const OuterAxis& axis) {
  if (axis.summed || axis.steps[kB] != 0 || axis.steps[kScaleB] != 0) return false;
  if (product.scale_rows != 1) return false;
  for (std::size_t role = 0; role < kRoles; ++role) {
    const View& view = product.views[role];
    if (!has_rows(role) || !view.present) continue;
    if (product.m > 1 && axis.steps[role] != view.row * product.m) return false;
  }
  return true;
}

bool continues_terms(const Product& product, const OuterAxis& axis) {
  const View &a = product.views[kA], &b = product.views[kB];
  return axis.summed && axis.steps[kA] == a.column * product.k &&
         axis.steps[kB] == b.row * product.k;
}

// Batches become rows only where `as_rows`: a sum of rows has one.
void join_axes(Product& product, bool as_rows) {
  std::vector<OuterAxis>& axes = product.axes;
  std::erase_if(axes, [](const OuterAxis& axis) { return axis.size == 1; });
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (as_rows && continues_rows(product, axes[i])) {
      for (std::size_t role = 0; role < kRoles; ++role) {
        if (has_rows(role) && product.m == 1) product.views[role].row = axes[i].steps[role];
      }
      product.m = saturating_mul(product.m, axes[i].size);
    } else if (continues_terms(product, axes[i])) {
      product.k = saturating_mul(product.k, axes[i].size);
    } else {
      continue;
    }
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::size_t i = axes.size(); i-- > 1;) {
    if (!joins(axes[i - 1], axes[i])) continue;
    axes[i].size = saturating_mul(axes[i].size, axes[i - 1].size);
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i - 1));
  }
  std::stable_partition(axes.begin(), axes.end(),
                        [](const OuterAxis& axis) { return !axis.summed; });
}

void turn(Product& product) {
  std::swap(product.m, product.n);
  std::swap(product.scale_rows, product.scale_columns);
  for (const auto& [a, b] : {std::pair{kA, kB}, std::pair{kScaleA, kScaleB}}) {
    std::swap(product.views[a], product.views[b]);
    for (OuterAxis& axis : product.axes) std::swap(axis.steps[a], axis.steps[b]);
  }
  for (View& view : product.views) std::swap(view.row, view.column);
}

// Kernels write rows by vectors, and have ways of their own for few rows.
bool is_better_turned(const Product& product) {
  constexpr std::int64_t kFew = 8;
  const View& result = product.views[kResult];
  if ((product.features & MATMUL_PAIRED) != 0) return false;
  if (std::min(product.m, product.n) <= kFew) return product.n < product.m;
  return result.column != 1 && result.row == 1;
}

abi::u32 activation_features(const MatmulProblem& call) {
  return call.activation.kind | (call.activation.paired ? MATMUL_PAIRED : 0U);
}

// Forward, or what backward needs of it.
Product sums_of(const Problem& problem, const Stage& stage) {
  const MatmulProblem& call = call_of(problem);
  const bool gradient = stage.step == Step::kShape;
  // Gates alone are no reason to multiply again.
  const bool multiplies =
      !gradient || call.activation.kind != MATMUL_NONE || problem.has(call.slots.grad_gate);
  Builder builder(problem, stage, call.m, call.columns, multiplies ? call.k : 0);
  builder.add(kA, call.slots.a, call.transpose_a);
  builder.add(kB, call.slots.b, call.transpose_b);
  builder.add(kBias, call.slots.bias);
  if (call.beta != 0) builder.add(kAddend, call.slots.addend);
  builder.add(kGate, call.slots.gate);
  Product& product = builder.product();
  product.features = activation_features(call);
  product.alpha = call.alpha;
  product.beta = call.beta;
  if (gradient) {
    product.features |= MATMUL_GRADIENT;
    builder.add(kResidual, call.slots.grad_output);
    builder.add(kBeside, call.slots.grad_gate);
    builder.add_gradient(kResult, false);
  } else {
    builder.add(kResidual, call.slots.residual);
    builder.add(kResult, call.slots.output);
    if (problem.dtype == DType::kI8) product.blocks = MATMUL_BLOCKS_WHOLE;
    builder.add_scale(kScaleA, call.slots.scale_a, call.transpose_a, call.scale_a);
    builder.add_scale(kScaleB, call.slots.scale_b, call.transpose_b, call.scale_b);
    product.whole = call.output == DType::kI32;
  }
  return std::move(product);
}

Product gradient_of_a(const Problem& problem, const Stage& stage) {
  const MatmulProblem& call = call_of(problem);
  Builder builder(problem, stage, call.m, call.k, call.columns);
  builder.sum_repeated(call.slots.a);
  builder.add_gradient(kA, false);
  builder.add(kB, call.slots.b, !call.transpose_b);
  builder.add(kResult, call.slots.grad_a, call.transpose_a);
  builder.product().alpha = call.alpha;
  return std::move(builder.product());
}

Product gradient_of_b(const Problem& problem, const Stage& stage) {
  const MatmulProblem& call = call_of(problem);
  Builder builder(problem, stage, call.k, call.columns, call.m);
  builder.sum_repeated(call.slots.b);
  builder.add(kA, call.slots.a, !call.transpose_a);
  builder.add_gradient(kB, false);
  builder.add(kResult, call.slots.grad_b, call.transpose_b);
  builder.product().alpha = call.alpha;
  return std::move(builder.product());
}

// Sums of the gradient over what the bias repeats along: a product with ones.
Product gradient_of_bias(const Problem& problem, const Stage& stage) {
  const MatmulProblem& call = call_of(problem);
  const Shape& shape = problem.spec(call.slots.bias).shape;
  const bool rows = shape.size() > 1 && shape[shape.size() - 2] != 1, columns = shape.back() != 1;
  const std::int64_t n = columns ? call.columns : 1;
  Builder builder(problem, stage, 1, n, columns ? (rows ? 1 : call.m) : call.columns);
  builder.sum_repeated(call.slots.bias);
  builder.add_ones(kA);
  builder.add_gradient(kB, !columns);
  builder.add(kResult, call.slots.grad_bias);
  Product& product = builder.product();
  const View gradient = product.views[kB];  // its rows are terms, but where they go around
  if (!columns) {
    builder.add_axis(call.m, !rows, kB, gradient.column);
    if (rows) product.axes.back().steps[kResult] = product.views[kResult].row;
  } else if (rows) {
    builder.add_axis(call.m, false, kB, gradient.row);
    product.axes.back().steps[kResult] = product.views[kResult].row;
  }
  return std::move(product);
}

// No product at all: beta times the gradient of the sums, 0 where beta is.
Product gradient_of_addend(const Problem& problem, const Stage& stage) {
  const MatmulProblem& call = call_of(problem);
  Builder builder(problem, stage, call.m, call.columns, 0);
  if (call.beta != 0) builder.add_gradient(kAddend, false);
  builder.add(kResult, call.slots.grad_addend);
  builder.product().beta = call.beta;
  return std::move(builder.product());
}

bool has_stage(const Problem& problem, const Stage& stage) {
  const MatmulProblem& call = call_of(problem);
  const MatmulSlots& slots = call.slots;
  if (stage.step == Step::kForward) return true;
  const bool shapes = call.shapes_gradient(problem);
  if (stage.step == Step::kShape) return shapes;
  if (stage.shaped != shapes) return false;
  switch (stage.step) {
    case Step::kGradA:
      return problem.has(slots.grad_a);
    case Step::kGradB:
      return problem.has(slots.grad_b);
    case Step::kGradBias:
      return problem.has(slots.grad_bias);
    default:
      return problem.has(slots.grad_addend);
  }
}

std::array<std::size_t, kRoles> bindings(const MatmulSlots& slots, Step step, bool shaped) {
  std::array<std::size_t, kRoles> to{};
  to.fill(kNoOperand);
  const std::size_t gradient = shaped ? kScratch : slots.grad_output;
  switch (step) {
    case Step::kForward:
    case Step::kShape:
      to = {slots.a,
            slots.b,
            slots.bias,
            slots.addend,
            slots.gate,
            step == Step::kShape ? slots.grad_output : slots.residual,
            step == Step::kShape ? kScratch : slots.output,
            step == Step::kShape ? slots.grad_gate : kNoOperand,
            slots.scale_a,
            slots.scale_b};
      break;
    case Step::kGradA:
      to[kA] = gradient;
      to[kB] = slots.b;
      to[kResult] = slots.grad_a;
      break;
    case Step::kGradB:
      to[kA] = slots.a;
      to[kB] = gradient;
      to[kResult] = slots.grad_b;
      break;
    case Step::kGradBias:
      to[kA] = kScratch;
      to[kB] = gradient;
      to[kResult] = slots.grad_bias;
      break;
    case Step::kGradAddend:
      to[kAddend] = gradient;
      to[kResult] = slots.grad_addend;
      break;
  }
  return to;
}

}  // namespace

std::int64_t Product::batches() const {
  std::int64_t count = 1;
  for (const OuterAxis& axis : axes) count = saturating_mul(count, axis.summed ? 1 : axis.size);
  return count;
}

std::int64_t Product::sums() const {
  std::int64_t count = 1;
  for (const OuterAxis& axis : axes) count = saturating_mul(count, axis.summed ? axis.size : 1);
  return count;
}

std::vector<Stage> stages(const MatmulSlots& slots, bool rounds) {
  std::vector<Stage> list;
  const auto add = [&](const std::string& name, Step step, bool shaped) {
    for (const bool turned : {false, true}) {
      Stage stage{.name = name + (shaped && step != Step::kShape ? " shaped" : "") +
                          (turned ? " turned" : ""),
                  .step = step,
                  .turned = turned,
                  .shaped = shaped,
                  .rounds = rounds,
                  .slots = bindings(slots, step, shaped)};
      if (turned) {
        std::swap(stage.slots[kA], stage.slots[kB]);
        std::swap(stage.slots[kScaleA], stage.slots[kScaleB]);
      }
      list.push_back(std::move(stage));
    }
  };
  if (!slots.backward()) {
    add("product", Step::kForward, false);
    return list;
  }
  add("shape", Step::kShape, true);
  for (const bool shaped : {false, true}) {
    add("grad_a", Step::kGradA, shaped);
    add("grad_b", Step::kGradB, shaped);
    add("grad_bias", Step::kGradBias, shaped);
    if (slots.grad_addend != kNoOperand) add("grad_addend", Step::kGradAddend, shaped);
  }
  return list;
}

std::optional<Product> product_of(const Problem& problem, const Stage& stage) {
  if (!has_stage(problem, stage)) return std::nullopt;
  Product product;
  switch (stage.step) {
    case Step::kForward:
    case Step::kShape:
      product = sums_of(problem, stage);
      break;
    case Step::kGradA:
      product = gradient_of_a(problem, stage);
      break;
    case Step::kGradB:
      product = gradient_of_b(problem, stage);
      break;
    case Step::kGradBias:
      product = gradient_of_bias(problem, stage);
      break;
    case Step::kGradAddend:
      product = gradient_of_addend(problem, stage);
      break;
  }
  join_axes(product, stage.step != Step::kGradBias);
  if (is_better_turned(product) != stage.turned) return std::nullopt;
  if (stage.turned) turn(product);
  return product;
}

std::vector<Product> products_of(const Problem& problem, bool rounds) {
  std::vector<Product> list;
  for (const Stage& stage : stages(call_of(problem).slots, rounds)) {
    if (auto product = product_of(problem, stage)) list.push_back(std::move(*product));
  }
  return list;
}

bool needs_ones(const Problem& problem) { return problem.has(call_of(problem).slots.grad_bias); }

std::uint64_t scratch_of_stages(const Problem& problem) {
  const MatmulProblem& call = call_of(problem);
  if (!call.slots.backward()) return 0;
  std::uint64_t floats = kOnes;
  if (!call.shapes_gradient(problem)) return floats;
  std::uint64_t sums =
      static_cast<std::uint64_t>(call.m) * static_cast<std::uint64_t>(call.columns);
  for (const std::int64_t extent : call.batch) sums *= static_cast<std::uint64_t>(extent);
  return floats + (sums + 3) / 4 * 4;
}

}  // namespace tessera::operations::matmul
