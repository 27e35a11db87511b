// SPDX-License-Identifier: Apache-2.0
#include "operations/flash_attention/launch.hpp"

#include "abi/shared.h"
#include "operations/flash_attention/args.h"

namespace tessera::operations {
namespace {

std::uint32_t ceil_div(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint32_t>((a + b - 1) / b);
}

const FlashAttentionProblem& call_of(const Problem& problem) {
  return problem.as<FlashAttentionProblem>();
}

abi::FlashAttentionArgs arguments(const Problem& problem) {
  const FlashAttentionProblem& call = call_of(problem);
  const auto narrow = [](std::int64_t value) { return static_cast<abi::u32>(value); };
  const TensorSpec& q = problem.spec(kQuery);
  const TensorSpec& k = problem.spec(kKey);
  const TensorSpec& v = problem.spec(kValue);
  const TensorSpec& o = problem.spec(kOutput);
  abi::FlashAttentionArgs args{};
  args.q_len = narrow(call.q_len);
  args.kv_len = narrow(call.kv_len);
  args.heads = narrow(call.heads);
  args.group = narrow(call.group());
  args.band_low = static_cast<abi::i32>(call.band_low);
  args.band_high = static_cast<abi::i32>(call.band_high);
  args.scale = static_cast<float>(call.scale);
  args.soft_cap = static_cast<float>(call.soft_cap);
  args.q_offset = narrow(q.offset);
  args.q_stride_batch = narrow(q.strides[0]);
  args.q_stride_row = narrow(q.strides[1]);
  args.q_stride_head = narrow(q.strides[2]);
  args.k_offset = narrow(k.offset);
  args.k_stride_batch = narrow(k.strides[0]);
  args.k_stride_row = narrow(k.strides[1]);
  args.k_stride_head = narrow(k.strides[2]);
  args.v_offset = narrow(v.offset);
  args.v_stride_batch = narrow(v.strides[0]);
  args.v_stride_row = narrow(v.strides[1]);
  args.v_stride_head = narrow(v.strides[2]);
  args.o_offset = narrow(o.offset);
  args.o_stride_batch = narrow(o.strides[0]);
  args.o_stride_row = narrow(o.strides[1]);
  args.o_stride_head = narrow(o.strides[2]);
  if (problem.has(kLogSumExp)) {
    const TensorSpec& lse = problem.spec(kLogSumExp);
    args.write_lse = 1;
    args.lse_offset = narrow(lse.offset);
    args.lse_stride_batch = narrow(lse.strides[0]);
    args.lse_stride_head = narrow(lse.strides[1]);
  }
  return args;
}

bool is_aligned(const Problem& problem) {
  const auto multiple_of_4 = [](std::int64_t n) { return n % 4 == 0; };
  for (const std::size_t slot : {kQuery, kKey, kValue, kOutput}) {
    const TensorSpec& spec = problem.spec(slot);
    const bool ok = multiple_of_4(spec.offset) && multiple_of_4(spec.shape[3]) &&
                    multiple_of_4(spec.strides[0]) && multiple_of_4(spec.strides[1]) &&
                    multiple_of_4(spec.strides[2]);
    if (!ok) return false;
  }
  return true;
}

std::vector<Define> shape_constants(const Problem& problem, const Config& /*config*/) {
  return {{"HEAD_DIM", head_dim(problem)},
          {"VALUE_DIM", value_dim(problem)},
          {"ALIGNED", is_aligned(problem) ? 1U : 0U}};
}

}  // namespace

std::uint32_t head_dim(const Problem& problem) {
  return static_cast<std::uint32_t>(call_of(problem).head_dim);
}
std::uint32_t value_dim(const Problem& problem) {
  return static_cast<std::uint32_t>(call_of(problem).value_dim);
}

std::uint32_t dtype_axis(DType dtype) {
  return dtype == DType::kF16 ? DTYPE_F16 : dtype == DType::kBF16 ? DTYPE_BF16 : DTYPE_F32;
}

Refusal rejects_long_offsets(const Problem& problem) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 31;
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    if (!problem.has(slot) || problem.spec(slot).last_element() < kMostElements) continue;
    return problem.operation->operands[slot].name + " " + problem.spec(slot).to_string() +
           " reaches element " + std::to_string(problem.spec(slot).last_element()) +
           "; its kernels count to 2^31";
  }
  return std::nullopt;
}

Pass forward_pass() {
  Pass pass;
  pass.bindings = {kQuery, kKey, kValue, kOutput, kLogSumExp};
  pass.constants = shape_constants;
  pass.groups = [](const Problem& problem, const Config& config) {
    const FlashAttentionProblem& call = call_of(problem);
    return Dim3{ceil_div(call.q_len, config.at("BLOCK_Q")), static_cast<std::uint32_t>(call.heads),
                static_cast<std::uint32_t>(call.batch)};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments(problem));
  };
  return pass;
}

}  // namespace tessera::operations
