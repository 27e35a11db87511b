// SPDX-License-Identifier: Apache-2.0
// The records of quantise and dequantise, and the typed functions.
#include <string>
#include <utility>
#include <vector>

#include "base/system/out_of_memory.hpp"
#include "operations/quantise/problem.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/quantise.hpp"

namespace tessera {
namespace operations::quantised {
namespace {

Operand codes_operand(std::string name, Role role, bool optional, std::string shape,
                      std::vector<DType> dtypes, std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .optional = optional,
          .shape = std::move(shape),
          .dtypes = std::move(dtypes),
          .doc = std::move(doc)};
}

const std::vector<DType> kFloats{DType::kF32, DType::kF16, DType::kBF16};
const std::vector<DType> kCodes{DType::kI8, DType::kU8,     DType::kI4,
                                DType::kU4, DType::kE4M3FN, DType::kE5M2};
const std::vector<DType> kUnsigned{DType::kU8, DType::kU4};
constexpr const char* kScales = "[..., rows / group_rows, columns / group_size]";

std::vector<OptionInfo> codes_options() {
  return {{.name = "group_size", .type = "int", .doc = "columns that share a scale"},
          {.name = "group_rows", .type = "int", .doc = "rows that share a scale"},
          {.name = "dynamic",
           .fallback = false,
           .type = "bool",
           .doc = "of i8: scale is what floats are multiplied by, 127 / (largest + 1e-6)"},
          layout_option("of codes")};
}

Operation quantise_record() {
  Operation operation;
  operation.name = "quantise";
  operation.summary = "floats as codes of 8 or 4 bits, with a scale for each block";
  operation.formula =
      "scale = largest magnitude / largest code; codes = round(input / scale); of u8 and u4 scale "
      "= (max - min) / largest code, zero_point = round(-min / scale), codes = round(input / "
      "scale) + zero_point";
  operation.operands = {
      codes_operand("input", Role::kInput, false, "[..., rows, columns]", kFloats, ""),
      codes_operand(
          "codes", Role::kOutput, false, "[..., rows, columns]", kCodes,
          "in the dtype that the option says; u8 [..., rows, bytes] in layouts of blocks"),
      codes_operand("scale", Role::kOutput, false, kScales, {DType::kF32}, ""),
      codes_operand("zero_point", Role::kOutput, true, kScales, kUnsigned, "of u8 and u4")};
  operation.options = codes_options();
  operation.options.push_back({.name = "dtype",
                               .fallback = std::string("i8"),
                               .type = "one of i8, u8, i4, u4, e4m3fn, e5m2",
                               .doc = "of codes"});
  operation.validate = validate_quantise;
  operation.reference = reference_quantise;
  add_ways(operation, list_of(quantise_cpu_way(), quantise_way(), gguf_quantise_way()));
  operation.workload = quantise_workload();
  return operation;
}

Operation dequantise_record() {
  Operation operation;
  operation.name = "dequantise";
  operation.summary = "the floats that codes stand for";
  operation.formula = "output = (codes - zero_point) scale, or codes / scale of dynamic ones";
  operation.operands = {
      codes_operand("codes", Role::kInput, false, "[..., rows, columns]", kCodes, ""),
      codes_operand("scale", Role::kInput, true, kScales, {DType::kF32},
                    "of plain layouts, which need it"),
      codes_operand("zero_point", Role::kInput, true, kScales, kUnsigned,
                    "in the dtype of codes; 0 where it is left out"),
      codes_operand("output", Role::kOutput, false, "[..., rows, columns]", kFloats,
                    "in the dtype that the option says")};
  operation.options = codes_options();
  operation.options.push_back({.name = "dtype",
                               .fallback = std::string("f32"),
                               .type = "one of f32, f16, bf16",
                               .doc = "of output"});
  for (const DType dtype : kFloats) {
    operation.types.emplace_back(std::string(to_string(dtype)),
                                 std::vector<std::pair<std::string, DType>>{{"output", dtype}});
  }
  operation.validate = validate_dequantise;
  operation.reference = reference_dequantise;
  add_ways(operation, list_of(dequantise_cpu_way(), dequantise_way(), gguf_dequantise_way()));
  operation.workload = dequantise_workload();
  return operation;
}

}  // namespace

std::vector<Operation> quantise() { return list_of(quantise_record(), dequantise_record()); }

}  // namespace operations::quantised

namespace {

Options blocks_of(const CodesBlocks& blocks) {
  Options values{{"dynamic", blocks.dynamic},
                 {"layout", operations::quantised::name_of(blocks.layout)}};
  if (blocks.group_size) values.emplace("group_size", *blocks.group_size);
  if (blocks.group_rows) values.emplace("group_rows", *blocks.group_rows);
  return values;
}

}  // namespace

Quantised quantise(const Executor& on, const Tensor& input, DType codes,
                   const CodesBlocks& blocks) try {
  Options values = blocks_of(blocks);
  values.emplace("dtype", std::string(to_string(codes)));
  std::vector<std::string> wanted;
  const bool zeros =
      blocks.layout == WeightLayout::kPlain && operations::quantised::is_unsigned_code(codes);
  if (zeros) wanted.emplace_back("zero_point");
  Tensors results = on.run("quantise", {{"input", input}}, std::move(values), wanted);
  return {.codes = std::move(results.at("codes")),
          .scale = std::move(results.at("scale")),
          .zero_point = zeros ? std::move(results.at("zero_point")) : Tensor{}};
} catch (...) {
  rethrow_as_error();
}

Tensor dequantise(const Executor& on, const Quantised& from, DType output,
                  const CodesBlocks& blocks) try {
  Options values = blocks_of(blocks);
  values.emplace("dtype", std::string(to_string(output)));
  Tensors tensors{{"codes", from.codes}};
  // Blocks hold theirs.
  if (from.scale && blocks.layout == WeightLayout::kPlain) tensors.emplace("scale", from.scale);
  if (from.zero_point) tensors.emplace("zero_point", from.zero_point);
  return on.run("dequantise", std::move(tensors), std::move(values)).at("output");
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
