// SPDX-License-Identifier: Apache-2.0
// ragged_page_attention_v3: refusals, and that it is a write by the formula and then
// ragged_page_attention. What it raises is compared on devices by the conformance table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "operations/attention/host_case.hpp"
#include "operations/attention_core/core/pages_args.h"
#include "operations/common/codes.hpp"
#include "selection/selector.hpp"
#include "support/messages.hpp"
#include "support/profiles.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::attention {
namespace {

using Values = std::vector<double>;

const Operation& fused() { return find_operation("ragged_page_attention_v3"); }

Case fused_case(const std::string& name, const std::string& types = "f32") {
  const std::vector<Case> cases =
      fused().workload.cases(*std::ranges::find(fused().types, types, &StorageTypes::name));
  return *std::ranges::find(cases, name, &Case::name);
}

std::string refusal(const std::string& operand, TensorSpec spec) {
  Case shape = fused_case("pages");
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
  says("kv_cache", DType::kI8, {23, 16, 4, 64},
       "kv_cache holds codes and needs kv_scale, or k_scale and v_scale");
  says("block_tables", DType::kI32, {20},
       "block_tables i32[20] must have a line for each of the sequences of kv_lens i32[3]");
  says("distribution", DType::kI32, {2}, "distribution i32[2] must be [3]");
}

TEST(RaggedPageAttentionV3, WritesByTheFormulaAndThenAttends) {
  for (const std::string name : {"pages", "odd_page", "prefill"}) {
    testing::HostCase host(fused(), fused_case(name));
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

TEST(RaggedPageAttentionV3, RefusesCachesApartThatDoNotBelongTogether) {
  const auto says = [](const std::string& operand, std::optional<TensorSpec> spec,
                       const std::string& text, const std::string& types = "f32") {
    Case shape = fused_case("pools", types);
    shape.operands[fused().slot(operand)] = std::move(spec);
    EXPECT_EQ(testing::message_of<InvalidArgument>(
                  [&] { make_problem(fused(), shape.operands, shape.options); }),
              "ragged_page_attention_v3: " + text);
  };
  const Case pools = fused_case("pools");
  const auto spec = [&](const char* operand) { return *pools.operands[fused().slot(operand)]; };
  const auto text = [&](const char* operand) {
    return std::string(operand) + " " + spec(operand).to_string();
  };
  TensorSpec fewer = TensorSpec::contiguous(DType::kF32, {41, 1, 40});
  says("values", fewer,
       text("keys") + " and values " + fewer.to_string() + " must have the same rows and kv_heads");
  fewer = TensorSpec::contiguous(DType::kF32, {3, 4, 1, 40});
  says("value_cache", fewer,
       "value_cache " + fewer.to_string() + " must be [pages, page_size, kv_heads, value_dim] of " +
           text("kv_cache") + " and " + text("values"));
  says("kv_cache", fewer,
       "kv_cache " + fewer.to_string() + " must be [pages, page_size, kv_heads, head_dim] of " +
           text("keys") + " beside value_cache");
  says("value_scale", std::nullopt, "takes kv_scale and value_scale together", "f32_i8");
  Case combined = fused_case("pages", "f32_i8");
  combined.operands[fused().slot("value_scale")] = TensorSpec::contiguous(DType::kF32, {1, 1, 1});
  EXPECT_EQ(testing::message_of<InvalidArgument>(
                [&] { make_problem(fused(), combined.operands, combined.options); }),
            "ragged_page_attention_v3: value_scale needs value_cache beside it; kv_scale has the "
            "scales of both");
}

// A call on caches apart is one on a cache that holds both by turns, of equal codes and outputs.
TEST(RaggedPageAttentionV3, CachesApartAreTheHalvesOfOne) {
  const std::size_t keys = fused().slot("kv_cache"), key_scale = fused().slot("kv_scale"),
                    apart_values = fused().slot("value_cache"), output = fused().slot("output"),
                    value_scale = fused().slot("value_scale");
  for (const std::string types : {"f32", "f16_i8", "f16_e4m3fn"}) {
    Case joint = fused_case("pages", types);
    const Shape cache = joint.operands[keys]->shape;
    const bool codes = is_code(joint.operands[keys]->dtype);
    if (codes)
      joint.operands[key_scale] =
          TensorSpec::contiguous(DType::kF32, {cache[0], cache[1], cache[2]});
    Case apart = joint;
    for (const std::size_t slot : {keys, apart_values})
      apart.operands[slot] = TensorSpec::contiguous(joint.operands[keys]->dtype,
                                                    {cache[0], cache[1], cache[2] / 2, cache[3]});
    for (const std::size_t slot : {key_scale, value_scale}) {
      if (codes)
        apart.operands[slot] =
            TensorSpec::contiguous(DType::kF32, {cache[0], cache[1], cache[2] / 2});
    }
    testing::HostCase one(fused(), joint), two(fused(), apart);
    const auto halves = [&](std::size_t slot, bool values) {
      const std::size_t dim = slot == keys ? static_cast<std::size_t>(cache[3]) : 1;
      const Values all = one.tensors()[slot].read();
      Values half;
      for (std::size_t n = 0; n < all.size(); ++n) {
        if ((n / dim % 2 == 1) == values) half.push_back(all[n]);
      }
      return half;
    };
    const auto sides = {std::tuple{keys, keys, false}, std::tuple{keys, apart_values, true},
                        std::tuple{key_scale, key_scale, false},
                        std::tuple{key_scale, value_scale, true}};
    for (std::size_t slot = 0; slot < output; ++slot) {
      if (slot != keys) two.tensors()[slot].write(one.tensors()[slot].read());
    }
    for (const auto& [from, to, values] : sides) {
      if (codes || from == keys) two.tensors()[to].write(halves(from, values));
    }
    for (testing::HostCase* host : {&one, &two})
      fused().reference(host->problem(), host->tensors());
    EXPECT_EQ(two.tensors()[output].read(), one.tensors()[output].read()) << types;
    for (const auto& [from, to, values] : sides) {
      if (!codes && from != keys) continue;
      const Values expected = halves(from, values), found = two.tensors()[to].read();
      for (std::size_t n = 0; n < expected.size(); ++n) {
        const bool same =
            found[n] == expected[n] || (std::isnan(found[n]) && std::isnan(expected[n]));
        ASSERT_TRUE(same) << types << " operand " << to << " at " << n;
      }
    }
  }
}

TEST(RaggedPageAttentionV3, ReadsAScaleThatAKeyAndAValueShare) {
  const std::vector<Case> cases =
      fused().workload.cases(*std::ranges::find(fused().types, "f32_i8", &StorageTypes::name));
  const std::size_t cache = fused().slot("kv_cache"), scale = fused().slot("kv_scale");
  Case one_head = *std::ranges::find_if(cases, [&](const Case& each) {
    return !each.operands[fused().slot("value_cache")] && each.operands[cache]->shape[2] == 2;
  });
  const Shape& pool = one_head.operands[cache]->shape;
  one_head.operands[scale] = TensorSpec::contiguous(DType::kF32, {pool[0], pool[1], 1});
  testing::HostCase host(fused(), one_head);
  const HostTensor& scales = host.tensors()[scale];
  const Values before = scales.read();
  fused().reference(host.problem(), host.tensors());
  EXPECT_EQ(scales.read(), before);
}

TEST(RaggedPageAttentionV3, RefusesScalesThatSayNothing) {
  const auto says = [](const std::string& types, const Options& options, bool given,
                       const std::string& text) {
    Case shape = fused_case(given ? "pages" : "scales", types);
    EXPECT_EQ(testing::message_of<InvalidArgument>(
                  [&] { make_problem(fused(), shape.operands, options); }),
              "ragged_page_attention_v3: " + text);
  };
  says("f32", {{"q_scale", 0.0}}, false, "option 'q_scale' must be greater than 0, not '0'");
  says("f32", {{"v_scale", -1.0}}, false, "option 'v_scale' must be greater than 0, not '-1'");
  says("f32", {{"q_scale", 0x1p-200}}, false,
       "option 'q_scale' must be a normal number in float, not '6.223015277861142e-61'");
  says("f32", {{"k_scale", 0x1p200}}, false,
       "option 'k_scale' must be a normal number in float, not '1.6069380442589903e+60'");
  says("f32_i8", {{"q_scale", 1.0}}, false,
       "kv_cache holds codes and needs kv_scale, or k_scale and v_scale");
  says("f32_i8", {{"k_scale", 1.0}}, true, "takes kv_scale, or k_scale and v_scale, and not both");
}

// The pass that scales reads and writes rows where the calls within do not look.
TEST(RaggedPageAttentionV3, RefusesScaledRowsThatAreOutOfReach) {
  const auto strided = [](const char* operand, std::vector<std::int64_t> strides,
                          const Options& options) {
    Case shape = fused_case("scales");
    std::optional<TensorSpec>& spec = shape.operands[fused().slot(operand)];
    spec = TensorSpec{.dtype = DType::kF32, .shape = {41, 8, 64}, .strides = std::move(strides)};
    return make_problem(fused(), shape.operands, options);
  };
  EXPECT_EQ(testing::message_of<InvalidArgument>([&] {
              strided("queries", {512, 1, 8}, {{"q_scale", 0.5}});
            }),
            "ragged_page_attention_v3: queries must be contiguous along its last axis");
  DeviceProfile profile = testing::load_profile("h200_opencl");
  profile.max_allocation = profile.max_binding = 0;
  const auto refused = [&](const char* operand, const Options& options) {
    const Problem problem = strided(operand, {std::int64_t{1} << 30, 64, 1}, options);
    return selection::refusal(problem, fused().variants.front(), profile).value_or("");
  };
  EXPECT_THAT(refused("queries", {{"q_scale", 0.5}}), ::testing::HasSubstr("count to 2^31"));
  EXPECT_THAT(refused("output", {{"v_scale", 0.5}}), ::testing::HasSubstr("count to 2^31"));
  EXPECT_EQ(refused("queries", {{"k_scale", 0.5}}), "");
}

// Numbers of a scale are ragged_page_attention's of what they stand for.
TEST(RaggedPageAttentionV3, ScalesSayWhatNumbersStandFor) {
  for (const std::string types : {"f32", "f32_i8"}) {
    const bool codes = types != "f32";
    const double q_scale = 0.25, k_scale = codes ? 1.0 / 32 : 0.75, v_scale = codes ? 0.5 : 1.5;
    Case shape = fused_case("scales", types);
    shape.options = {{"q_scale", q_scale}, {"k_scale", k_scale}, {"v_scale", v_scale}};
    testing::HostCase host(fused(), shape);
    const auto at = [&](const char* operand) -> HostTensor& {
      return host.tensors()[fused().slot(operand)];
    };
    Values queries = at("queries").read();
    for (std::size_t n = 0; n < queries.size(); ++n)
      queries[n] = 40 * std::sin(static_cast<double>(n));
    at("queries").write(queries);
    queries = at("queries").read();
    fused().reference(host.problem(), host.tensors());

    const Operation& plain = find_operation("ragged_page_attention");
    const std::vector<Case> cases =
        plain.workload.cases(*std::ranges::find(plain.types, types, &StorageTypes::name));
    Case other_shape = *std::ranges::find(cases, "pages", &Case::name);
    other_shape.options["softmax_scale"] = q_scale / 8 * (codes ? 1 : k_scale);
    if (codes)
      other_shape.operands[plain.slot("kv_scale")] = TensorSpec::contiguous(DType::kF32, {1, 1, 4});
    testing::HostCase other(plain, other_shape);
    const auto write = [&](const char* operand, const Values& numbers) {
      other.tensors()[plain.slot(operand)].write(numbers);
    };
    for (double& query : queries) {
      query /= q_scale;
      if (codes) query = std::clamp(std::nearbyint(query), -128.0, 127.0);
    }
    write("queries", queries);
    write("kv_pages", at("kv_cache").read());
    write("context_lens", at("kv_lens").read());
    write("block_tables", at("block_tables").read());
    write("query_start_loc", at("query_start_loc").read());
    write("num_seqs", {at("distribution").read()[2]});
    if (codes) write("kv_scale", {k_scale, v_scale, k_scale, v_scale});
    plain.reference(other.problem(), other.tensors());
    Values expected = other.tensors()[plain.slot("output")].read();
    const Values output = at("output").read();
    for (std::size_t n = 0; n < expected.size(); ++n)
      ASSERT_FLOAT_EQ(output[n], expected[n] * (codes ? 1 : v_scale)) << types << " " << n;
  }
}

// By the names that operands have here, whichever of the two calls within finds it.
TEST(RaggedPageAttentionV3, TellsErrorsOfItsOwnOperands) {
  const auto raised = [](const char* operand, std::size_t index, double value) {
    testing::HostCase host(fused(), fused_case("pages"));
    HostTensor& tensor = host.tensors()[fused().slot(operand)];
    Values values = tensor.read();
    values.at(index) = value;
    tensor.write(values);
    std::vector<std::string> told;
    for (const Raised& each : fused().raises(host.problem(), host.tensors())) {
      const ErrorKind& error = fused().errors.at(each.error);
      told.push_back(error.kind + " of " + error.operand + " at " + std::to_string(each.index));
    }
    return told;
  };
  using Told = std::vector<std::string>;
  EXPECT_EQ(raised("block_tables", 0, 1 << 20), Told{"page_outside_pool of block_tables at 0"});
  EXPECT_EQ(raised("kv_lens", 0, 1 << 20).front(), "length_out_of_range of kv_lens at 0");
  EXPECT_EQ(raised("query_start_loc", 0, -1).back(), "start_out_of_order of query_start_loc at 0");
}

TEST(RaggedPageAttentionV3, ChecksTheDistribution) {
  const auto raised = [](const Values& ends) {
    testing::HostCase host(fused(), fused_case("pages"));
    host.tensors()[fused().slot("distribution")].write(ends);
    std::vector<Raised> all = fused().raises(host.problem(), host.tensors());
    std::erase_if(all, [](const Raised& each) { return each.error < PAGES_BAD_END; });
    return all;
  };
  EXPECT_TRUE(raised({0, 1, 2}).empty());
  EXPECT_TRUE(raised({1, 1, 2}).empty());  // the first sequence has one row
  const auto expect_one = [&](const Values& ends, std::size_t error, std::uint32_t index) {
    const std::vector<Raised> all = raised(ends);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].error, error);
    EXPECT_EQ(all[0].index, index);
  };
  expect_one({1, 0, 2}, PAGES_BAD_END, 1);
  expect_one({0, 0, 4}, PAGES_BAD_END, 2);
  expect_one({-1, 0, 2}, PAGES_BAD_END, 0);
  expect_one({2, 2, 2}, PAGES_NOT_ONE_ROW, 1);
}

}  // namespace
}  // namespace tessera::operations::attention
