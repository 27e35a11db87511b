// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "kernel/option_access.hpp"
#include "operations/cumsum/call.hpp"

namespace tessera::operations::recurrence {
namespace {

DType output_dtype(const Problem& problem) {
  if (std::holds_alternative<std::monostate>(problem.option("output_dtype"))) return problem.dtype;
  const std::array dtypes{DType::kF32, DType::kF16, DType::kBF16};
  return dtypes[kernel::choice_option(problem, "output_dtype", {"f32", "f16", "bf16"})];
}

}  // namespace

void validate_cumsum(Problem& problem) {
  const TensorSpec& input = problem.spec(kCumsumInput);
  problem.dtype = input.dtype;
  CumsumCall call;
  call.reverse = kernel::bool_option(problem, "reverse");
  call.head_first = kernel::bool_option(problem, "head_first");
  call.scale = *kernel::number_option(problem, "scale");
  const std::string shape = call.head_first ? "[batch, heads, seq] or [batch, heads, seq, dim]"
                                            : "[batch, seq, heads] or [batch, seq, heads, dim]";
  const std::size_t rank = input.shape.size();
  require(problem, rank == 3 || rank == 4,
          operand_text(problem, kCumsumInput) + " must be " + shape);
  call.batch = input.shape[0];
  call.tokens = input.shape[call.token_axis()];
  call.heads = input.shape[call.head_axis()];
  if (rank == 4) call.dim = input.shape[3];
  require(problem, call.tokens < std::int64_t{1} << 30,
          "sequences must be shorter than 2^30 tokens");
  const std::int64_t all = std::max<std::int64_t>(call.tokens, 1);
  call.chunk = std::min(integer_option(problem, "chunk", 1).value_or(all), all);
  if (problem.has(kCumsumOffsets)) {
    const Shape& boundaries = problem.spec(kCumsumOffsets).shape;
    require(problem, boundaries.size() == 1 && boundaries[0] >= 1,
            operand_text(problem, kCumsumOffsets) +
                " must have one axis, of one element more than there are sequences");
    require(problem, call.batch == 1,
            operand_text(problem, kCumsumInput) + " must have batch 1, for cu_seqlens packs it");
    call.sequences = boundaries[0] - 1;
  }
  problem.infer_output(kCumsumOutput, output_dtype(problem), input.shape);
  problem.key = "dtype=" + std::string(to_string(problem.dtype)) +
                ";tokens=" + bucket(call.tokens) + ";chunk=" + bucket(call.chunk) +
                ";columns=" + bucket(call.heads * call.dim) + (call.sequences ? ";packed" : "");
  problem.set_details(call);
}

}  // namespace tessera::operations::recurrence
