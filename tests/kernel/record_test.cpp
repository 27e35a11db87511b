// SPDX-License-Identifier: Apache-2.0
// Configurations, names, problems and the registry: nothing here needs a device.
#include "tessera/record.hpp"

#include <gtest/gtest.h>

#include "kernel/repeated.hpp"
#include "support/messages.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using testing::message_of;

Operation scale_operation(const std::string& name) {
  Operation operation;
  operation.name = name;
  operation.operands = {{.name = "x", .shape = "[n]", .dtypes = {DType::kF32}},
                        {.name = "bias", .optional = true, .shape = "[n]", .dtypes = {DType::kF32}},
                        {.name = "y", .role = Role::kOutput, .shape = "[n]"}};
  operation.options = {{.name = "factor", .fallback = 2.0, .type = "float"},
                       {.name = "axis", .fallback = std::int64_t{0}, .type = "int"}};
  operation.validate = [](Problem& problem) {
    problem.infer_output(2, DType::kF32, problem.spec(0).shape);
  };
  operation.reference = [](const Problem& problem, std::span<HostTensor> tensors) {
    std::vector<double> values = tensors[0].read();
    for (double& value : values) value *= std::get<double>(problem.option("factor"));
    tensors[2].write(values);
  };
  return operation;
}

TEST(Config, TextFormIsSortedAndReadBack) {
  const Config config{{"WG_X", 64}, {"BLOCK_Q", 32}};
  EXPECT_EQ(config.to_string(), "BLOCK_Q=32,WG_X=64");
  EXPECT_EQ(Config::parse(config.to_string()), config);
  EXPECT_EQ(Config::parse(""), Config());
  EXPECT_EQ(config.group(), (Dim3{64, 1, 1}));
}

TEST(Config, RefusesWhatIsNotAConfiguration) {
  for (const char* text :
       {"BLOCK", "=3", "A=", "A=x", "A=-1", "A=1,,B=2", "A=1,A=2", "A=99999999999"}) {
    EXPECT_THROW(Config::parse(text), InvalidArgument) << text;
  }
  EXPECT_THROW((Config{{"A", 1}}.at("B")), InvalidArgument);
}

TEST(FullName, IsParsedAsItIsPrinted) {
  const Operation operation = scale_operation("scale");
  const Variant variant{.name = "tile"};
  const DeviceProfile profile{.backend = Backend::kVulkan, .name = "llvmpipe (LLVM 15, 256 bits)"};
  const Config config{{"WG_X", 8}};
  const std::string name = full_name(operation, variant, config, DType::kF16, profile);
  EXPECT_EQ(name, "scale.tile/f16@vulkan:llvmpipe (LLVM 15, 256 bits){WG_X=8}");
  const FullName parts = parse_full_name(name);
  EXPECT_EQ(parts.operation, "scale");
  EXPECT_EQ(parts.variant, "tile");
  EXPECT_EQ(parts.dtype, "f16");
  EXPECT_EQ(parts.backend, "vulkan");
  EXPECT_EQ(parts.device, profile.name);
  EXPECT_EQ(parts.config, config);
  for (const char* bad :
       {"", "scale", "scale.tile", "scale.tile/f16@vulkan", "scale.tile/f16@vulkan:x{WG_X=}"}) {
    EXPECT_THROW(parse_full_name(bad), InvalidArgument) << bad;
  }
}

TEST(Problem, FillsInDefaultsAndInfersOutputs) {
  const Operation operation = scale_operation("scale");
  const Problem problem = make_problem(operation, {TensorSpec::contiguous(DType::kF32, {5})}, {});
  EXPECT_EQ(problem.option("factor"), OptionValue(2.0));
  ASSERT_TRUE(problem.has(2));
  EXPECT_EQ(problem.spec(2), TensorSpec::contiguous(DType::kF32, {5}));
  EXPECT_FALSE(problem.has(1));
}

TEST(Problem, EveryRefusalNamesWhatIsWrong) {
  const Operation operation = scale_operation("scale");
  const TensorSpec good = TensorSpec::contiguous(DType::kF32, {5});
  const auto with = [&](auto change) {
    TensorSpec spec = good;
    change(spec);
    return message_of([&] { make_problem(operation, {spec}, {}); });
  };
  EXPECT_EQ(message_of([&] { make_problem(operation, {}, {}); }),
            "scale: input 'x' [n] is missing");
  EXPECT_EQ(message_of([&] {
              make_problem(operation, {good}, {{"speed", 1.0}});
            }),
            "scale has no option 'speed'; it has factor, axis");
  EXPECT_EQ(message_of([&] {
              make_problem(operation, {good}, {{"factor", std::string("big")}});
            }),
            "scale: option 'factor' takes float, not 'big'");
  EXPECT_EQ(with([](TensorSpec& s) { s.dtype = DType::kI32; }),
            "scale: x i32[5] must be one of f32");
  EXPECT_EQ(with([](TensorSpec& s) { s.strides = {}; }),
            "scale: x f32[5] has not one stride for each axis");
  EXPECT_EQ(with([](TensorSpec& s) { s.offset = -1; }),
            "scale: x f32[5] starts at the negative offset -1");
  EXPECT_EQ(with([](TensorSpec& s) { s.strides = {-1}; }),
            "scale: x f32[5] has a negative stride along axis 0");
  EXPECT_EQ(with([](TensorSpec& s) { s.shape = {-5}; }),
            "scale: x f32[-5] has a negative extent along axis 0");
  EXPECT_EQ(with([](TensorSpec& s) { s.strides = {std::int64_t{1} << 62}; }),
            "scale: x f32[5] reaches beyond what 64 bits can address");
  EXPECT_EQ(
      message_of([&] {
        make_problem(operation, {good, std::nullopt, TensorSpec::contiguous(DType::kF32, {4})}, {});
      }),
      "scale: y is f32[4] but must be f32[5]");
  TensorSpec repeated = good;
  repeated.strides = {0};
  EXPECT_EQ(message_of([&] {
              make_problem(operation, {good, std::nullopt, repeated}, {});
            }),
            "scale: y f32[5] is written to and has stride 0 along axis 0");
}

TEST(Problem, NoMemoryIsAnError) {
  Operation operation = scale_operation("no_memory");
  operation.validate = [](Problem&) { throw std::bad_alloc(); };
  EXPECT_THROW(make_problem(operation, {TensorSpec::contiguous(DType::kF32, {4})}, {}),
               OutOfHostMemory);
}

TEST(Problem, EveryRegisteredOperationHasAPrecision) {
  const Operation& operation = register_operation(scale_operation("precision_test_scale"));
  const auto precision_of_call = [&](Options options) {
    return make_problem(operation, {TensorSpec::contiguous(DType::kF32, {5})}, std::move(options))
        .precision;
  };
  EXPECT_EQ(precision_of_call({}), Precision::kDefault);
  EXPECT_EQ(precision_of_call({{"precision", OptionValue()}}), Precision::kDefault);
  EXPECT_EQ(precision_of_call({{"precision", std::string("high")}}), Precision::kHigh);
  EXPECT_EQ(precision_of_call({{"precision", std::string("highest")}}), Precision::kHighest);
  EXPECT_EQ(message_of([&] {
              precision_of_call({{"precision", std::string("most")}});
            }),
            "precision is default, high or highest, not 'most'");
  EXPECT_EQ(message_of([&] {
              precision_of_call({{"precision", 3.0}});
            }),
            "precision is default, high or highest, not '3'");
  Operation own = scale_operation("precision_test_own");
  own.options.push_back({.name = "precision", .type = "int"});
  EXPECT_EQ(message_of([&] { register_operation(own); }),
            "precision_test_own: the option 'precision' is every operation's");
}

TEST(Variant, SixteenBitFactorsAreNotRoundedForFloats) {
  const Variant rounds{.name = "rounds", .rounds_factors = true};
  EXPECT_EQ(precision_of(rounds, DType::kF32), Precision::kHighest);
  EXPECT_EQ(precision_of(rounds, DType::kF16), Precision::kHigh);
  EXPECT_EQ(precision_of(rounds, DType::kBF16), Precision::kHigh);
  const Variant single{.name = "tf32", .rounds_factors = true, .precision = Precision::kDefault};
  EXPECT_EQ(precision_of(single, DType::kF32), Precision::kDefault);
  EXPECT_EQ(precision_of(single, DType::kF16), Precision::kDefault);
}

// Validated by one operation and read by another, or not validated at all.
TEST(Problem, DetailsAreReadAsWhatTheyAre) {
  struct Parsed {
    int value = 0;
  };
  struct Foreign {
    int value = 0;
  };
  const Operation operation = scale_operation("scale");
  Problem problem{.operation = &operation};
  EXPECT_EQ(message_of<InvalidArgument>([&] { problem.as<Parsed>(); }),
            "scale: validate() has stored no details");
  problem.set_details(Parsed{7});
  EXPECT_EQ(problem.as<Parsed>().value, 7);
  EXPECT_EQ(Problem(problem).as<Parsed>().value, 7);
  EXPECT_EQ(message_of<InvalidArgument>([&] { problem.as<Foreign>(); }),
            "scale: what validate() stored is of another type");
  problem.set_details(Foreign{8});
  EXPECT_EQ(problem.as<Foreign>().value, 8);
  EXPECT_EQ(message_of<InvalidArgument>([&] { Problem().as<Parsed>(); }),
            "a problem: validate() has stored no details");
}

// a and b, and an output that tells two combinations apart.
Operation product_operation(const std::string& name) {
  Operation operation = scale_operation(name);
  operation.operands = {{.name = "a", .shape = "[n]"},
                        {.name = "b", .shape = "[n]"},
                        {.name = "y", .role = Role::kOutput, .shape = "[n]"}};
  operation.options = {{.name = "wide", .fallback = false, .type = "bool"}};
  operation.types = {{"i8_i32", {{"a", DType::kI8}, {"b", DType::kI8}, {"y", DType::kI32}}},
                     {"i8_f32", {{"a", DType::kI8}, {"b", DType::kI8}, {"y", DType::kF32}}},
                     {"f16_i4", {{"a", DType::kF16}, {"b", DType::kI4}, {"y", DType::kF16}}}};
  operation.validate = [](Problem& problem) {
    problem.dtype = problem.types.dtype();
    const bool wide = std::get<bool>(problem.option("wide"));
    problem.infer_output(2, wide ? DType::kF32 : problem.types.of("y"), problem.spec(0).shape);
  };
  return operation;
}

TEST(StorageTypes, ACallHasTheCombinationThatFits) {
  register_operation(product_operation("types_test_product"));
  const Operation& operation = find_operation("types_test_product");
  const auto of = [&](DType a, DType b, bool wide) {
    return make_problem(operation, {TensorSpec::contiguous(a, {8}), TensorSpec::contiguous(b, {8})},
                        {{"wide", wide}})
        .types;
  };
  const auto key_of = [&](DType b, bool wide) {
    const DType a = b == DType::kI4 ? DType::kF16 : DType::kI8;
    return make_problem(operation, {TensorSpec::contiguous(a, {8}), TensorSpec::contiguous(b, {8})},
                        {{"wide", wide}})
        .key;
  };
  EXPECT_EQ(key_of(DType::kI8, false), ";types=i8_i32");
  EXPECT_EQ(key_of(DType::kI8, true), ";types=i8_f32");
  EXPECT_EQ(key_of(DType::kI4, false), ";types=f16_i4");
  EXPECT_EQ(of(DType::kI8, DType::kI8, false).name(), "i8_i32");
  EXPECT_EQ(of(DType::kI8, DType::kI8, true).name(), "i8_f32");
  const StorageTypes mixed = of(DType::kF16, DType::kI4, false);
  EXPECT_EQ(mixed.name(), "f16_i4");
  EXPECT_EQ(mixed.dtype(), DType::kF16);
  EXPECT_EQ(mixed.of("b"), DType::kI4);
  EXPECT_EQ(mixed.of("scales"), DType::kF16);
  EXPECT_EQ(message_of([&] { of(DType::kF16, DType::kF16, false); }),
            "types_test_product: a f16, b f16 is no combination of dtypes that it takes; they are "
            "i8_i32 (a i8, b i8, y i32), i8_f32 (a i8, b i8, y f32), f16_i4 (a f16, b i4, y f16)");
  EXPECT_EQ(StorageTypes(DType::kBF16).name(), "bf16");
  const Variant some{.name = "some", .types = {"f16_i4"}};
  EXPECT_TRUE(takes(some, mixed));
  EXPECT_FALSE(takes(some, of(DType::kI8, DType::kI8, true)));

  Operation bad = product_operation("types_test_bad");
  bad.types.emplace_back("odd", std::vector<std::pair<std::string, DType>>{{"c", DType::kF16}});
  EXPECT_EQ(message_of([&] { register_operation(bad); }),
            "types_test_bad: the combination of dtypes 'odd' names an unknown operand 'c'");
}

TEST(HostTensor, ReadsAndWritesEveryDTypeThroughStrides) {
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kU8, DType::kF64}) {
    std::vector<std::byte> memory(64 * size_of(dtype));
    // A transposed 2 x 3 view with a gap, three elements into the buffer.
    HostTensor tensor{.spec = {.dtype = dtype, .shape = {2, 3}, .strides = {1, 4}, .offset = 3},
                      .data = memory.data()};
    const std::vector<double> values{1, 2, 3, 4, 5, 6};
    tensor.write(values);
    EXPECT_EQ(tensor.read(), values) << to_string(dtype);
    const HostTensor flat{.spec = TensorSpec::contiguous(dtype, {64}), .data = memory.data()};
    EXPECT_EQ(flat.read()[3 + 1 + 2 * 4], 6) << to_string(dtype);
  }
}

// More elements than a thread takes at a time, through strides and in rows of half bytes.
TEST(HostTensor, FewerValuesAreRepeated) {
  constexpr std::size_t kRows = 401, kColumns = 999, kValues = 1009;
  std::vector<double> values(kValues);
  for (std::size_t i = 0; i < kValues; ++i) values[i] = static_cast<double>(i % 8);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI8, DType::kI4}) {
    TensorSpec spec = TensorSpec::contiguous(dtype, {kRows, kColumns});
    if (dtype == DType::kF16) spec.strides = {1, kRows + 2};
    if (dtype == DType::kI8) spec.strides[0] += 5;
    std::vector<std::byte> bytes(static_cast<std::size_t>(spec.last_element() + 1) * 4);
    HostTensor tensor{.spec = spec, .data = bytes.data()};
    kernel::write_repeated(tensor, values);
    const std::vector<double> all = tensor.read();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < all.size(); ++i) wrong += all[i] == values[i % kValues] ? 0 : 1;
    EXPECT_EQ(wrong, 0U) << to_string(dtype);
    tensor.write(all);
    EXPECT_EQ(tensor.read(), all) << to_string(dtype);
  }
}

TEST(Registry, RefusesInconsistentRecords) {
  Operation operation = scale_operation("registry_test_bad");
  operation.validate = nullptr;
  EXPECT_EQ(message_of([&] { register_operation(operation); }),
            "registry_test_bad: an operation needs validate()");
  EXPECT_NE(
      message_of([] { find_operation("no_such_operation"); }).find("there are flash_attention"),
      std::string::npos);
  EXPECT_NE(message_of([] {
              register_operation(scale_operation("flash_attention"));
            }).find("registered already"),
            std::string::npos);
}

TEST(Registry, RefusesErrorsThatNobodyTells) {
  Operation operation = scale_operation("registry_test_errors");
  operation.errors = {{.kind = "odd", .operand = "x", .sentence = "is odd"}};
  EXPECT_EQ(message_of([&] { register_operation(operation); }),
            "registry_test_errors: an operation with errors needs raises(), which says when "
            "kernels raise them");
  operation.raises = [](const Problem&, std::span<HostTensor>) { return std::vector<Raised>{}; };
  operation.errors.front().operand = "z";
  EXPECT_EQ(message_of([&] { register_operation(operation); }),
            "registry_test_errors: the error 'odd' is about an unknown operand 'z'");
  operation.errors.clear();
  Variant variant{.name = "fast"};
  variant.passes = {{.name = "pass", .host = operation.reference, .bindings = {0, kErrors, 2}}};
  variant.space = [](const Problem&, const DeviceProfile&) { return std::vector<Config>{{}}; };
  operation.variants = {variant};
  EXPECT_EQ(
      message_of([&] { register_operation(operation); }),
      "registry_test_errors.fast: pass 'pass' binds kErrors, and the operation has no errors");
  operation.errors = {{.kind = "odd", .operand = "x", .sentence = "is odd"}};
  EXPECT_EQ(message_of([&] { register_operation(operation); }),
            "registry_test_errors.fast: pass 'pass' needs both, kErrors among its bindings and "
            "errors_at, or neither");
}

TEST(Registry, AVariantIsAddedWithoutChangingWhatCallersHold) {
  register_operation(scale_operation("registry_test_scale"));
  const Operation& before = find_operation("registry_test_scale");
  const std::size_t count = before.variants.size();
  Variant variant{.name = "fast"};
  variant.passes = {{.host = before.reference, .bindings = {0, 2}}};
  variant.space = [](const Problem&, const DeviceProfile&) {
    return std::vector<Config>{Config{}};
  };
  register_variant("registry_test_scale", variant);
  EXPECT_EQ(before.variants.size(), count);
  EXPECT_NE(find_operation("registry_test_scale").find_variant("fast"), nullptr);
  EXPECT_NE(
      message_of([&] { register_variant("registry_test_scale", variant); }).find("two variants"),
      std::string::npos);
}

}  // namespace
}  // namespace tessera
