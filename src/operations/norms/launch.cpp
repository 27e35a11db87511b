// SPDX-License-Identifier: Apache-2.0
#include "operations/norms/launch.hpp"

#include <algorithm>
#include <string>

#include "operations/common/launch.hpp"

namespace tessera::operations::norms {
namespace {

const NormProblem& call_of(const Problem& problem) { return problem.as<NormProblem>(); }

abi::u32 narrow(auto value) { return static_cast<abi::u32>(value); }

bool has_rows(std::size_t slot, const Problem& problem) {
  if (!problem.has(slot)) return false;
  return slot != kWeight && slot != kBias && (slot != kGradWeight && slot != kGradBias);
}

// One leading axis: strides by slot, 0 where an operand lacks it.
struct Axis {
  std::int64_t size = 1;
  bool summed = false;
  std::vector<std::int64_t> strides{};
};

std::vector<Axis> axes_of(const Problem& problem) {
  const NormProblem& call = call_of(problem);
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < call.leading.size(); ++axis) {
    if (call.leading[axis] == 1) continue;
    Axis result{.size = call.leading[axis],
                .summed = call.residual_leading[axis] == 1,
                .strides = std::vector<std::int64_t>(problem.operands.size(), 0)};
    for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
      if (!has_rows(slot, problem)) continue;
      const TensorSpec& spec = problem.spec(slot);
      const std::size_t missing = call.leading.size() + 1 - spec.shape.size();
      if (axis >= missing && spec.shape[axis - missing] != 1)
        result.strides[slot] = spec.strides[axis - missing];
    }
    axes.push_back(std::move(result));
  }
  return axes;
}

bool joins(const Axis& outer, const Axis& inner) {
  if (outer.summed != inner.summed) return false;
  for (std::size_t slot = 0; slot < outer.strides.size(); ++slot) {
    if (outer.strides[slot] != inner.strides[slot] * inner.size) return false;
  }
  return true;
}

RowAxes require_axes(const Problem& problem) { return *row_axes(problem); }

abi::NormRows rows_of(const Problem& problem, const RowAxes& axes, std::size_t slot) {
  if (!problem.has(slot)) return {};
  return {narrow(problem.spec(slot).offset), narrow(axes.strides[slot][0]),
          narrow(axes.strides[slot][1]), narrow(axes.strides[slot][2])};
}

template <class Args>
Args common_arguments(const Problem& problem, const RowAxes& axes) {
  const NormProblem& call = call_of(problem);
  Args args{};
  args.rows = narrow(call.rows);
  args.rows1 = narrow(std::max<std::int64_t>(axes.sizes[1], 1));
  args.rows2 = narrow(std::max<std::int64_t>(axes.sizes[2], 1));
  args.dim = narrow(call.dim);
  args.features = features_of(problem);
  args.epsilon = static_cast<float>(call.epsilon);
  args.mean_factor = 1.0F / static_cast<float>(call.dim);
  if (problem.has(kWeight)) args.weight_offset = narrow(problem.spec(kWeight).offset);
  args.x = rows_of(problem, axes, kInput);
  args.residual = rows_of(problem, axes, kResidual);
  return args;
}

}  // namespace

abi::u32 features_of(const Problem& problem) {
  const NormProblem& call = call_of(problem);
  abi::u32 features = call.centered ? NORM_CENTERED : 0U;
  const auto add = [&](std::size_t slot, abi::u32 feature, abi::u32 wide) {
    if (!problem.has(slot)) return;
    features |= feature;
    if (problem.spec(slot).dtype == DType::kF32 && problem.dtype != DType::kF32) features |= wide;
  };
  add(kWeight, NORM_WEIGHT, NORM_WIDE_WEIGHT);
  add(kBias, NORM_BIAS, NORM_WIDE_BIAS);
  add(kResidual, NORM_RESIDUAL, 0);
  add(kSum, NORM_SUM, 0);  // or its gradient
  if (!call.backward) return features;
  add(kGradWeight, NORM_GRAD_WEIGHT, 0);
  add(kGradBias, NORM_GRAD_BIAS, 0);
  if (problem.has(kGradResidual))
    features |= call.residual_broadcasts() ? NORM_KEEP_GRADIENT : NORM_GRAD_RESIDUAL;
  return features;
}

std::optional<RowAxes> row_axes(const Problem& problem) {
  std::vector<Axis> joined;
  for (Axis& axis : axes_of(problem)) {
    if (!joined.empty() && joins(joined.back(), axis)) {
      axis.size *= joined.back().size;
      joined.back() = std::move(axis);
    } else {
      joined.push_back(std::move(axis));
    }
  }
  RowAxes result;
  if (joined.size() > result.sizes.size()) return std::nullopt;
  result.strides.resize(problem.operands.size());
  const std::size_t first = result.sizes.size() - joined.size();
  for (std::size_t i = 0; i < joined.size(); ++i) {
    result.sizes[first + i] = joined[i].size;
    result.summed[first + i] = joined[i].summed;
    for (std::size_t slot = 0; slot < problem.operands.size(); ++slot)
      result.strides[slot][first + i] = joined[i].strides[slot];
  }
  return result;
}

Dealing deal(std::int64_t rows, std::int64_t lines, std::int64_t wanted) {
  const std::int64_t blocks = ceil_div(rows, lines);
  if (blocks == 0) return {.groups = 0, .lines = lines};
  const std::int64_t each = ceil_div(blocks, std::clamp<std::int64_t>(wanted, 1, blocks));
  return {.groups = ceil_div(blocks, each), .lines = lines};
}

NormScratch scratch_of(const Problem& problem, const Dealing& dealing) {
  const NormProblem& call = call_of(problem);
  const auto wide = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  NormScratch scratch;
  scratch.columns = wide(ceil_div(call.dim, 16) * 16);  // whole vectors of a CPU
  if (problem.has(kGradWeight) || problem.has(kGradBias))
    scratch.kept = 2 * wide(dealing.shares()) * scratch.columns;
  scratch.floats = scratch.kept;
  if (combines(problem, kGradResidual)) scratch.floats += wide(call.rows) * scratch.columns;
  return scratch;
}

bool is_aligned(const Problem& problem) {
  const auto axes = row_axes(problem);
  const std::int64_t elements = 16 / static_cast<std::int64_t>(size_of(problem.dtype));
  const bool backward = call_of(problem).backward;
  if (!axes || call_of(problem).dim % elements != 0) return false;
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    if (!problem.has(slot) || (!backward && slot == kScale)) continue;
    const TensorSpec& spec = problem.spec(slot);
    // Floats beside 16-bit operands.
    const bool by_elements = spec.dtype == DType::kF32 && problem.dtype != DType::kF32;
    if (!by_elements && spec.offset % elements != 0) return false;
    for (const std::int64_t stride : axes->strides[slot])
      if (stride % elements != 0) return false;
  }
  return true;
}

abi::NormForwardArgs forward_arguments(const Problem& problem) {
  const RowAxes axes = require_axes(problem);
  auto args = common_arguments<abi::NormForwardArgs>(problem, axes);
  if (problem.has(kBias)) args.bias_offset = narrow(problem.spec(kBias).offset);
  args.y = rows_of(problem, axes, kOutput);
  args.sum = rows_of(problem, axes, kSum);
  return args;
}

abi::NormBackwardArgs backward_arguments(const Problem& problem, const Dealing& dealing) {
  const RowAxes axes = require_axes(problem);
  auto args = common_arguments<abi::NormBackwardArgs>(problem, axes);
  const NormScratch scratch = scratch_of(problem, dealing);
  args.shares = narrow(dealing.shares());
  args.columns = narrow(scratch.columns);
  args.kept = narrow(scratch.kept);
  args.dy = rows_of(problem, axes, kGradOutput);
  args.dsum = rows_of(problem, axes, kGradSum);
  args.dx = rows_of(problem, axes, kGradInput);
  args.dresidual = rows_of(problem, axes, kGradResidual);
  return args;
}

bool combines(const Problem& problem, std::size_t slot) {
  return problem.has(slot) && (slot != kGradResidual || call_of(problem).residual_broadcasts());
}

abi::NormCombineArgs combine_arguments(const Problem& problem, const Dealing& dealing,
                                       std::size_t slot) {
  const NormProblem& call = call_of(problem);
  const NormScratch scratch = scratch_of(problem, dealing);
  const TensorSpec& spec = problem.spec(slot);
  abi::NormCombineArgs args{};
  args.dim = narrow(call.dim);
  args.columns = narrow(scratch.columns);
  args.offset = narrow(spec.offset);
  args.wide = spec.dtype != problem.dtype ? 1U : 0U;
  args.rows = args.inner = args.repeats = 1;
  if (slot != kGradResidual) {
    args.count = args.repeats = narrow(std::max<std::int64_t>(dealing.shares(), 1));
    if (dealing.shares() == 0) args.count = 0;
    args.step1 = 1;
    args.from = slot == kGradBias ? narrow(scratch.kept / 2) : 0;
    return args;
  }
  // Axes that are summed lie together in scratch, or with axes of the output between them.
  const RowAxes axes = require_axes(problem);
  args.from = narrow(scratch.kept);
  std::int64_t step = 1, count = 1, rows = 1, summed_axes = 0, own_axes = 0;
  bool inside = false;  // the axis before, further in, was summed
  for (std::size_t axis = axes.sizes.size(); axis-- > 0;) {
    const std::int64_t size = axes.sizes[axis];
    if (size == 1) continue;
    if (axes.summed[axis]) {
      count *= size;
      if (!inside && summed_axes++ == 0) {
        args.step1 = narrow(step);
      } else if (!inside) {
        args.step0 = narrow(step);
      }
      if (summed_axes == 1) args.repeats = narrow(count);
    } else {
      rows *= size;
      if (own_axes++ == 0) {
        args.inner = narrow(size);
        args.inner_rows = narrow(step);
        args.stride1 = narrow(axes.strides[slot][axis]);
      } else {
        args.outer_rows = narrow(step);
        args.stride0 = narrow(axes.strides[slot][axis]);
      }
    }
    inside = axes.summed[axis];
    step *= size;
  }
  args.count = narrow(count);
  args.rows = narrow(rows);
  args.inner = std::max(args.inner, 1U);
  args.repeats = std::max(args.repeats, 1U);
  return args;
}

Refusal rejects_norm(const Problem& problem, const DeviceProfile& profile) {
  if (problem.dtype != DType::kF32 && !has(profile.features, Feature::kStorage16))
    return std::string(to_string(problem.dtype)) + " needs storage16, which this device lacks";
  if (Refusal no = rejects_long_operands(problem, profile)) return no;
  if (!row_axes(problem))
    return "takes at most three leading axes that do not lie one behind the other";
  return std::nullopt;
}

Refusal rejects_scratch(const Problem& problem, const Dealing& dealing) {
  const std::uint64_t floats = scratch_of(problem, dealing).floats;
  if (floats < std::uint64_t{1} << 31) return std::nullopt;
  return "needs " + std::to_string(floats) + " floats of scratch for its sums and counts to 2^31";
}

}  // namespace tessera::operations::norms
