// SPDX-License-Identifier: Apache-2.0
// The C interface: results as from C++, and a status for everything that is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <thread>

#include "capi/handles.hpp"
#include "support/messages.hpp"
#include "tessera/tessera_operations.h"

namespace tessera {
namespace {

// A struct that has grown since its first version.
struct Grown {
  std::size_t struct_size;
  std::int64_t first;
  std::int64_t added;
};

}  // namespace

template <>
inline constexpr std::size_t capi::kFirstVersion<Grown> = offsetof(Grown, added);

namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::array<std::int64_t, 3> kShape{1, 2, 3};

tessera_spec spec_of(const std::array<std::int64_t, 3>& shape) {
  return {sizeof(tessera_spec), TESSERA_F32, 3, shape.data(), nullptr, 0};
}

class CApi : public ::testing::Test {
 protected:
  void SetUp() override {
    const tessera_context_options options{sizeof options, "host", "", 1};
    ASSERT_EQ(tessera_open(&options, &context_), TESSERA_SUCCESS) << tessera_last_error();
    const tessera_spec spec = spec_of(kShape);
    const std::array<float, 6> values{1, 2, 3, 5, 6, 7};
    ASSERT_EQ(tessera_upload(context_, &spec, values.data(), sizeof values, &input_),
              TESSERA_SUCCESS);
  }
  void TearDown() override {
    tessera_tensor_destroy(input_);
    tessera_context_destroy(context_);
  }
  std::array<float, 3> read(const tessera_tensor* tensor) const {
    std::array<float, 3> values{};
    EXPECT_EQ(tessera_download(context_, tensor, values.data(), sizeof values), TESSERA_SUCCESS)
        << tessera_last_error();
    return values;
  }
  // That the last call failed with this message.
  static void expect(tessera_status got, tessera_status wanted, const char* message) {
    EXPECT_EQ(got, wanted) << tessera_last_error();
    EXPECT_THAT(tessera_last_error(), HasSubstr(message));
  }

  tessera_context* context_ = nullptr;
  tessera_tensor* input_ = nullptr;
};

TEST_F(CApi, TypedAndGenericCallsGiveTheSame) {
  EXPECT_THAT(tessera_device_summary(context_), StartsWith("[host]"));
  tessera_stream* stream = nullptr;
  ASSERT_EQ(tessera_stream_create(context_, &stream), TESSERA_SUCCESS);
  tessera_tensor* output = nullptr;
  tessera_sequence_mean_call call{};
  call.input = input_;
  call.output = &output;
  ASSERT_EQ(tessera_sequence_mean(context_, stream, &call), TESSERA_SUCCESS)
      << tessera_last_error();
  EXPECT_EQ(tessera_stream_synchronize(stream), TESSERA_SUCCESS);
  EXPECT_EQ(read(output), (std::array<float, 3>{3, 4, 5}));
  const char* name = nullptr;
  EXPECT_EQ(tessera_last_execution(context_, &name), TESSERA_SUCCESS);
  EXPECT_THAT(name, StartsWith("sequence_mean.reference/f32@host"));

  // Again, into the tensor that there is now, of which nothing but the elements changes.
  tessera_tensor* const before = output;
  EXPECT_EQ(tessera_sequence_mean(context_, nullptr, &call), TESSERA_SUCCESS);
  EXPECT_EQ(output, before);
  tessera_spec spec{sizeof spec, TESSERA_U8, 0, nullptr, nullptr, 0};
  EXPECT_EQ(tessera_tensor_spec(output, &spec), TESSERA_SUCCESS);
  EXPECT_EQ(spec.rank, 2U);
  EXPECT_EQ(spec.shape[1], 3);
  EXPECT_EQ(spec.dtype, TESSERA_F32);

  // Handles go in any order.
  tessera_stream_destroy(stream);
  tessera_tensor_destroy(output);
}

TEST(CMemory, ThatOutputsLeftIsReleased) {
  tessera_context* context = nullptr;
  ASSERT_EQ(tessera_open(nullptr, &context), TESSERA_SUCCESS) << tessera_last_error();
  const bool host = std::string(tessera_device_summary(context)).starts_with("[host]");
  const tessera_spec spec = spec_of(kShape);
  const std::array<float, 6> values{1, 2, 3, 5, 6, 7};
  tessera_tensor* input = nullptr;
  ASSERT_EQ(tessera_upload(context, &spec, values.data(), sizeof values, &input), TESSERA_SUCCESS);
  tessera_tensor* output = nullptr;
  tessera_sequence_mean_call call{};
  call.input = input;
  call.output = &output;
  ASSERT_EQ(tessera_sequence_mean(context, nullptr, &call), TESSERA_SUCCESS)
      << tessera_last_error();
  tessera_tensor_destroy(output);
  std::uint64_t bytes = 1;
  EXPECT_EQ(tessera_release_memory(context, &bytes), TESSERA_SUCCESS);
  EXPECT_EQ(bytes, host ? 0 : 3 * sizeof(float));  // the host leaves that to its allocator
  EXPECT_EQ(tessera_release_memory(context, nullptr), TESSERA_SUCCESS);
  tessera_tensor_destroy(input);
  tessera_context_destroy(context);
}

TEST_F(CApi, OptionsOfAllTypesArrive) {
  const std::array<std::int64_t, 4> shape{1, 3, 1, 2};
  const tessera_spec spec{sizeof spec, TESSERA_F32, 4, shape.data(), nullptr, 0};
  const std::array<float, 6> values{1, 0, 0, 1, 1, 1};
  tessera_tensor* q = nullptr;
  ASSERT_EQ(tessera_upload(context_, &spec, values.data(), sizeof values, &q), TESSERA_SUCCESS);
  tessera_tensor* output = nullptr;
  tessera_flash_attention_call call{};
  call.query = call.key = call.value = q;
  call.output = &output;
  const std::array<std::int64_t, 2> window{0, 0};
  call.sliding_window = tessera_ints(window.data(), 2);  // each row sees itself alone
  call.softmax_scale = tessera_float(0.5);
  call.causal = tessera_bool(1);
  call.num_splits = tessera_int(1);
  call.precision = tessera_text("highest");
  ASSERT_EQ(tessera_flash_attention(context_, nullptr, &call), TESSERA_SUCCESS)
      << tessera_last_error();
  std::array<float, 6> result{};
  EXPECT_EQ(tessera_download(context_, output, result.data(), sizeof result), TESSERA_SUCCESS);
  EXPECT_EQ(result, values);
  tessera_tensor_destroy(output);
  output = nullptr;
  call.precision = tessera_text("nonsense");
  expect(tessera_flash_attention(context_, nullptr, &call), TESSERA_INVALID_ARGUMENT, "nonsense");
  EXPECT_EQ(output, nullptr);
  tessera_tensor_destroy(q);
}

TEST_F(CApi, QuestionsNeedNoTensors) {
  const tessera_spec spec = spec_of(kShape);
  const tessera_operand input{"input", nullptr, &spec};
  tessera_call call{};
  call.struct_size = sizeof call;
  call.operation = "sequence_mean";
  call.operands = &input;
  call.operand_count = 1;
  EXPECT_EQ(tessera_query_support(context_, &call), TESSERA_SUCCESS) << tessera_last_error();
  const std::array<const tessera_call*, 1> calls{&call};
  EXPECT_EQ(tessera_prewarm(context_, calls.data(), calls.size()), TESSERA_SUCCESS);
  std::uint64_t bytes = 1;
  EXPECT_EQ(tessera_scratch_bytes(context_, &call, &bytes), TESSERA_SUCCESS);
  EXPECT_EQ(bytes, 0U);
  call.variant = "cpu";
  expect(tessera_query_support(context_, &call), TESSERA_UNSUPPORTED, "cpu");
  // Without a tensor nothing can be run.
  call.variant = nullptr;
  expect(tessera_run(context_, &call), TESSERA_INVALID_ARGUMENT, "input");
}

TEST_F(CApi, ASpecOfAnOutputSaysNothingToARun) {
  const std::array<std::int64_t, 1> row{3};
  const tessera_spec spec = spec_of(kShape),
                     row_spec{sizeof spec, TESSERA_F32, 1, row.data(), nullptr, 0};
  const std::array<float, 3> ones{1, 1, 1};
  tessera_tensor* weight = nullptr;
  ASSERT_EQ(tessera_upload(context_, &row_spec, ones.data(), sizeof ones, &weight),
            TESSERA_SUCCESS);
  const std::array<tessera_operand, 3> operands{
      {{"input", input_, nullptr}, {"grad_output", input_, nullptr}, {"weight", weight, nullptr}}};
  tessera_tensor *grad_input = nullptr, *grad_weight = nullptr;
  // The first of the two has one: each still gets its own result.
  const std::array<tessera_output, 2> outputs{
      {{"grad_input", &grad_input, &spec}, {"grad_weight", &grad_weight, nullptr}}};
  tessera_call call{};
  call.struct_size = sizeof call;
  call.operation = "rms_norm_backward";
  call.operands = operands.data();
  call.operand_count = operands.size();
  call.outputs = outputs.data();
  call.output_count = outputs.size();
  ASSERT_EQ(tessera_run(context_, &call), TESSERA_SUCCESS) << tessera_last_error();
  const auto rank_of = [](const tessera_tensor* tensor) {
    tessera_spec made{sizeof made, TESSERA_F32, 0, nullptr, nullptr, 0};
    EXPECT_EQ(tessera_tensor_spec(tensor, &made), TESSERA_SUCCESS) << tessera_last_error();
    return made.rank;
  };
  EXPECT_EQ(rank_of(grad_input), 3U);
  EXPECT_EQ(rank_of(grad_weight), 1U);
  tessera_tensor_destroy(grad_weight);
  // And where it is the only one.
  tessera_tensor_destroy(grad_input);
  grad_input = nullptr;
  call.output_count = 1;
  ASSERT_EQ(tessera_run(context_, &call), TESSERA_SUCCESS) << tessera_last_error();
  EXPECT_EQ(rank_of(grad_input), 3U);
  tessera_tensor_destroy(grad_input);
  tessera_tensor_destroy(weight);
}

TEST_F(CApi, ViewsAreOtherElementsOfTheSameMemory) {
  const std::array<std::int64_t, 1> shape{3}, strides{-1}, steps{2};
  tessera_spec spec{sizeof spec, TESSERA_F32, 1, shape.data(), steps.data(), 1};
  tessera_tensor* view = nullptr;
  ASSERT_EQ(tessera_tensor_view(input_, &spec, &view), TESSERA_SUCCESS);
  EXPECT_EQ(read(view), (std::array<float, 3>{2, 5, 7}));
  tessera_tensor_destroy(view);
  // Checked where it is used.
  spec.strides = strides.data();
  ASSERT_EQ(tessera_tensor_view(input_, &spec, &view), TESSERA_SUCCESS);
  std::array<float, 3> values{};
  expect(tessera_download(context_, view, values.data(), sizeof values), TESSERA_INVALID_ARGUMENT,
         "negative stride");
  tessera_tensor_destroy(view);
}

TEST_F(CApi, NullsAndNonsenseAreRefused) {
  tessera_tensor* tensor = nullptr;
  tessera_spec spec = spec_of(kShape);
  expect(tessera_open(nullptr, nullptr), TESSERA_INVALID_ARGUMENT, "context is null");
  expect(tessera_synchronize(nullptr), TESSERA_INVALID_ARGUMENT, "context is null");
  expect(tessera_release_memory(nullptr, nullptr), TESSERA_INVALID_ARGUMENT, "context is null");
  expect(tessera_stream_create(nullptr, nullptr), TESSERA_INVALID_ARGUMENT, "stream is null");
  expect(tessera_stream_synchronize(nullptr), TESSERA_INVALID_ARGUMENT, "stream is null");
  expect(tessera_tensor_create(nullptr, &spec, &tensor), TESSERA_INVALID_ARGUMENT,
         "context is null");
  expect(tessera_tensor_create(context_, nullptr, &tensor), TESSERA_INVALID_ARGUMENT,
         "spec is null");
  expect(tessera_upload(context_, &spec, nullptr, 24, &tensor), TESSERA_INVALID_ARGUMENT,
         "data is null");
  expect(tessera_upload(context_, &spec, &spec, 23, &tensor), TESSERA_INVALID_ARGUMENT, "23");
  expect(tessera_download(context_, nullptr, nullptr, 0), TESSERA_INVALID_ARGUMENT,
         "tensor is null");
  expect(tessera_download(context_, input_, nullptr, 24), TESSERA_INVALID_ARGUMENT, "data is null");
  expect(tessera_download(context_, input_, &spec, 4), TESSERA_INVALID_ARGUMENT, "24 bytes, not 4");
  expect(tessera_run(context_, nullptr), TESSERA_INVALID_ARGUMENT, "call is null");
  spec.shape = nullptr;
  expect(tessera_tensor_create(context_, &spec, &tensor), TESSERA_INVALID_ARGUMENT,
         "spec.shape is null");
  spec.shape = kShape.data();
  spec.struct_size = 4;
  expect(tessera_tensor_create(context_, &spec, &tensor), TESSERA_INVALID_ARGUMENT, "struct_size");
  spec = spec_of(kShape);
  spec.dtype = static_cast<tessera_dtype>(99);
  expect(tessera_tensor_create(context_, &spec, &tensor), TESSERA_INVALID_ARGUMENT, "99");
  EXPECT_EQ(tensor, nullptr);

  tessera_call call{};
  call.struct_size = sizeof call;
  expect(tessera_run(context_, &call), TESSERA_INVALID_ARGUMENT, "call.operation is null");
  call.operation = "nonsense";
  expect(tessera_run(context_, &call), TESSERA_INVALID_ARGUMENT, "nonsense");
  call.operation = "sequence_mean";
  call.operand_count = 1;
  expect(tessera_run(context_, &call), TESSERA_INVALID_ARGUMENT, "call.operands is null");
  const tessera_operand nameless{nullptr, input_, nullptr};
  call.operands = &nameless;
  expect(tessera_run(context_, &call), TESSERA_INVALID_ARGUMENT, "the name of an operand is null");
  call.operand_count = 0;
  const tessera_option option{"precision", {static_cast<tessera_value_type>(77), 0, {0}}};
  call.options = &option;
  call.option_count = 1;
  expect(tessera_run(context_, &call), TESSERA_INVALID_ARGUMENT, "77");

  const tessera_context_options options{sizeof options, "nonsense", "", 1};
  tessera_context* none = nullptr;
  expect(tessera_open(&options, &none), TESSERA_NO_DEVICE, "nonsense");
  EXPECT_EQ(none, nullptr);
  const bool built = TESSERA_HAVE_OPENCL != 0;
  expect(tessera_opencl_open(nullptr, nullptr, nullptr, nullptr, &none),
         built ? TESSERA_INVALID_ARGUMENT : TESSERA_UNSUPPORTED,
         built ? "the cl_context is null" : "this build of Tessera lacks it");
  void* memory = nullptr;
  expect(tessera_opencl_memory(input_, &memory),
         built ? TESSERA_INVALID_ARGUMENT : TESSERA_UNSUPPORTED,
         built ? "is on no OpenCL device" : "this build of Tessera lacks it");

  // Destroying nothing is nothing.
  tessera_context_destroy(nullptr);
  tessera_stream_destroy(nullptr);
  tessera_tensor_destroy(nullptr);
  EXPECT_EQ(tessera_device_summary(nullptr), nullptr);
}

TEST_F(CApi, ALaterCallersStructsAreLonger) {
  // What the caller's version has more is left alone.
  struct Later {
    tessera_context_options known;
    const char* added;
  } later{{sizeof(Later), "host", "", 1}, "ignored"};
  tessera_context* context = nullptr;
  EXPECT_EQ(tessera_open(&later.known, &context), TESSERA_SUCCESS) << tessera_last_error();
  tessera_context_destroy(context);
}

TEST_F(CApi, AnOlderCallersStructsAreShorter) {
  // The caller's has but the first field, and behind it lies something else.
  const struct {
    std::size_t struct_size;
    std::int64_t first;
    std::int64_t foreign;
  } given{offsetof(Grown, added), 7, 99};
  Grown older{};
  std::memcpy(&older, &given, sizeof given);
  const Grown known = capi::known_part(&older, "grown");
  EXPECT_EQ(known.first, 7);
  EXPECT_EQ(known.added, 0);
  older.struct_size = sizeof older;
  EXPECT_EQ(capi::known_part(&older, "grown").added, 99);
  older.struct_size = offsetof(Grown, added) - 1;
  EXPECT_EQ(testing::message_of<InvalidArgument>([&] { capi::known_part(&older, "grown"); }),
            "grown.struct_size is 15, less than the first version's 16");

  // Padding at the end is of no version: a later field may lie in it.
  const tessera_context_options options{
      offsetof(tessera_context_options, ignore_environment) + sizeof(std::int32_t), "host", "", 1};
  tessera_context* context = nullptr;
  EXPECT_EQ(tessera_open(&options, &context), TESSERA_SUCCESS) << tessera_last_error();
  tessera_context_destroy(context);
}

TEST_F(CApi, MessagesAreOfTheThread) {
  expect(tessera_synchronize(nullptr), TESSERA_INVALID_ARGUMENT, "context is null");
  std::jthread([] { EXPECT_STREQ(tessera_last_error(), ""); }).join();
  EXPECT_THAT(tessera_last_error(), HasSubstr("context is null"));
  for (int status = TESSERA_SUCCESS; status <= TESSERA_INTERNAL_ERROR; ++status)
    EXPECT_STRNE(tessera_status_name(static_cast<tessera_status>(status)), "unknown status");
  EXPECT_STREQ(tessera_status_name(static_cast<tessera_status>(1000)), "unknown status");
}

}  // namespace
}  // namespace tessera
