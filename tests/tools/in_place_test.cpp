// SPDX-License-Identifier: Apache-2.0
// tessera run on an operation that changes an operand in place: the operation of
// examples/append_rows, on the host.
#include <gmock/gmock.h>

#include <cstring>
#include <vector>

#include "../../examples/append_rows/operation.hpp"
#include "temporary_files.hpp"
#include "tessera/command_line.hpp"
#include "tessera/commands/commands.hpp"
#include "tessera/files/tensor_files.hpp"
#include "tessera/output/usage.hpp"

namespace tessera::tool {
namespace {

class InPlace : public TemporaryFiles {
 protected:
  static void SetUpTestSuite() {
    Operation operation = append_rows::operation(
        append_rows::rows_variant(TESSERA_SOURCE_DIR "/examples/append_rows"));
    operation.name = "run_test_append";
    register_operation(std::move(operation));
  }

  template <class T>
  std::string file(const std::string& name, ElementType type, Shape shape,
                   const std::vector<T>& values) const {
    FileTensor tensor{type, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    write_npy(path(name), tensor);
    return path(name).string();
  }

  // With rows of two features, and a cache of four rows of 7.
  int run(const std::vector<std::int32_t>& slots, const std::vector<std::string>& targets) const {
    std::vector<std::string> words{
        "tessera",
        "run",
        "run_test_append",
        "--device",
        "host",
        "--input",
        "rows=" + file<float>("rows.npy", ElementType::kF32, {2, 2}, {1, 2, 3, 4}),
        "--input",
        "slots=" + file("slots.npy", ElementType::kI32, {2}, slots),
        "--input",
        "cache=" + file("cache.npy", ElementType::kF32, {4, 2}, std::vector<float>(8, 7.0F))};
    words.insert(words.end(), targets.begin(), targets.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    App tool("in place", "tessera");
    const Command command = add_run(tool);
    EXPECT_TRUE(tool.parse(static_cast<int>(arguments.size()), arguments.data()));
    return command.run();
  }
};

TEST_F(InPlace, WhatChangedIsWrittenAndTheInputIsLeftAlone) {
  EXPECT_EQ(run({3, 0}, {"--outputs", path("out.safetensors").string(), "--output",
                         "cache=" + path("after.npy").string()}),
            0);
  const FileTensor changed = read_safetensors(path("out.safetensors")).at("cache");
  std::vector<float> values(8);
  ASSERT_EQ(changed.bytes.size(), values.size() * sizeof(float));
  std::memcpy(values.data(), changed.bytes.data(), changed.bytes.size());
  EXPECT_EQ(values, (std::vector<float>{3, 4, 7, 7, 7, 7, 1, 2}));
  EXPECT_EQ(read_npy(path("after.npy")).bytes, changed.bytes);
  std::memcpy(values.data(), read_npy(path("cache.npy")).bytes.data(), changed.bytes.size());
  EXPECT_EQ(values, std::vector<float>(8, 7.0F));
}

TEST_F(InPlace, TheInputIsNoTarget) {
  EXPECT_THROW(run({3, 0}, {"--output", "cache=" + path("cache.npy").string()}), UsageError);
}

TEST_F(InPlace, ErrorsOfKernelsAreSaid) {
  try {
    run({3, 4}, {"--output", "cache=" + path("after.npy").string()});
    ADD_FAILURE() << "a slot outside of the cache was not reported";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "run_test_append: slots[1] names no row of the cache");
  }
}

}  // namespace
}  // namespace tessera::tool
