// SPDX-License-Identifier: Apache-2.0
// ragged_page_attention_v3: refusals, and that it is a write by the formula and then
// ragged_page_attention. What it raises is compared on devices by the conformance table.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "operations/attention/host_case.hpp"
#include "operations/attention_core/distribution_args.h"
#include "support/messages.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::attention {
namespace {

using Values = std::vector<double>;

const Operation& fused() { return find_operation("ragged_page_attention_v3"); }

Case case_of(const std::string& name) {
  const std::vector<Case> cases = fused().workload.cases(fused().types.front());
  return *std::ranges::find(cases, name, &Case::name);
}

std::string refusal(const std::string& operand, TensorSpec spec) {
  Case shape = case_of("pages");
  shape.operands[fused().slot(operand)] = std::move(spec);
  return testing::message_of<InvalidArgument>(
      [&] { make_problem(fused(), shape.operands, shape.options); });
}

TEST(RaggedPageAttentionV3, RefusesWhatDoesNotBelongTogether) {
  const auto says = [](const std::string& operand, DType dtype, Shape shape,
                       const std::string& text) {
    EXPECT_EQ(refusal(operand, TensorSpec::contiguous(dtype, std::move(shape))),
              "ragged_page_attention_v3: " + text);
  };
  says("keys", DType::kF32, {41, 2, 32},
       "keys f32[41, 2, 32] and values f32[41, 2, 64] must have one shape");
  says("kv_cache", DType::kF32, {23, 16, 6, 64},
       "kv_cache f32[23, 16, 6, 64] and keys f32[41, 2, 64] differ in heads or features; heads are "
       "those of keys and values by turns");
  says("kv_cache", DType::kF32, {23, 16, 1, 2, 128},
       "kv_cache f32[23, 16, 1, 2, 128] and keys f32[41, 2, 64] differ in heads or features; heads "
       "are those of keys and values by turns");
  says("kv_cache", DType::kI8, {23, 16, 4, 64}, "kv_cache holds codes and needs kv_scale");
  says("block_tables", DType::kI32, {20},
       "block_tables i32[20] must have a line for each of the sequences of kv_lens i32[3]");
  says("distribution", DType::kI32, {2}, "distribution i32[2] must be [3]");
}

TEST(RaggedPageAttentionV3, WritesByTheFormulaAndThenAttends) {
  for (const std::string name : {"pages", "odd_page", "prefill"}) {
    testing::HostCase host(fused(), case_of(name));
    const auto at = [&](const char* operand) -> HostTensor& {
      return host.tensors()[fused().slot(operand)];
    };
    const Values keys = at("keys").read(), values = at("values").read(),
                 lengths = at("kv_lens").read(), tables = at("block_tables").read(),
                 starts = at("query_start_loc").read(), ends = at("distribution").read();
    Values cache = at("kv_cache").read();
    const Shape shape = at("kv_cache").spec.shape;
    const auto size = static_cast<std::size_t>(shape[1]),
               heads = static_cast<std::size_t>(shape[2]), dim = static_cast<std::size_t>(shape[3]);
    const std::size_t line = tables.size() / lengths.size();
    for (std::size_t n = 0; n < static_cast<std::size_t>(ends[2]); ++n) {
      for (double row = starts[n]; row < starts[n + 1]; ++row) {
        const auto token = static_cast<std::size_t>(lengths[n] - starts[n + 1] + row);
        const auto page = static_cast<std::size_t>(tables[n * line + token / size]);
        for (std::size_t c = 0; c < heads * dim; ++c) {
          const std::size_t head = c / dim / 2, d = c % dim;
          const Values& from = c / dim % 2 == 0 ? keys : values;
          cache[(page * size + token % size) * heads * dim + c] =
              from[(static_cast<std::size_t>(row) * heads / 2 + head) * dim + d];
        }
      }
    }
    fused().reference(host.problem(), host.tensors());
    const Values after = at("kv_cache").read();
    for (std::size_t n = 0; n < cache.size(); ++n) {
      const bool same = after[n] == cache[n] || (after[n] != after[n] && cache[n] != cache[n]);
      ASSERT_TRUE(same) << name << " " << n;
    }

    const Operation& plain = find_operation("ragged_page_attention");
    const std::vector<Case> cases = plain.workload.cases(plain.types.front());
    testing::HostCase other(plain, *std::ranges::find(cases, name, &Case::name));
    const auto write = [&](const char* operand, const Values& numbers) {
      other.tensors()[plain.slot(operand)].write(numbers);
    };
    write("queries", at("queries").read());
    write("kv_pages", cache);
    write("context_lens", lengths);
    write("block_tables", tables);
    write("query_start_loc", starts);
    write("num_seqs", {ends[2]});
    plain.reference(other.problem(), other.tensors());
    EXPECT_EQ(other.tensors()[plain.slot("output")].read(), at("output").read()) << name;
  }
}

TEST(RaggedPageAttentionV3, ChecksTheDistribution) {
  const auto raised = [](const Values& ends) {
    testing::HostCase host(fused(), case_of("pages"));
    host.tensors()[fused().slot("distribution")].write(ends);
    return fused().raises(host.problem(), host.tensors());
  };
  EXPECT_TRUE(raised({0, 1, 2}).empty());
  EXPECT_TRUE(raised({1, 1, 2}).empty());  // the first sequence has one row
  const auto expect_one = [&](const Values& ends, std::size_t error, std::uint32_t index) {
    const std::vector<Raised> all = raised(ends);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].error, error);
    EXPECT_EQ(all[0].index, index);
  };
  expect_one({1, 0, 2}, DISTRIBUTION_OUT_OF_ORDER, 1);
  expect_one({0, 0, 4}, DISTRIBUTION_OUT_OF_ORDER, 2);
  expect_one({-1, 0, 2}, DISTRIBUTION_OUT_OF_ORDER, 0);
  expect_one({2, 2, 2}, DISTRIBUTION_NOT_ONE_ROW, 1);
}

}  // namespace
}  // namespace tessera::operations::attention
