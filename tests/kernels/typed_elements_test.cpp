// SPDX-License-Identifier: Apache-2.0
// Elements of a type that is a value: the loop of processors and what GPUs run, on whatever device
// there is.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "abi/processors.h"
#include "abi/shared.h"
#include "runtime/glsl.hpp"
#include "tile_test.hpp"

namespace tessera::device {
namespace {

constexpr std::uint32_t kItems = 13, kStep = 3, kOfItem = 4 * kStep + 1;

class TypedElements : public Tiles {
 protected:
  void copy(DType dtype, std::uint32_t type, std::uint32_t on_processor) {
    SCOPED_TRACE(std::string(to_string(dtype)) + (on_processor != 0 ? " in a loop" : ""));
    const Matrix source = random_matrix(kItems, kOfItem, 5, dtype);
    const std::size_t size = source.values.size() * bits_of(dtype) / 8;
    const BufferPtr target = device_->create_buffer((size + 3) / 4 * 4), taken = output(4 * kItems);
    stream_->fill(*target, 0, target->size(), 0);
    const std::array<std::uint32_t, 3> arguments{type, kStep, kItems};
    ProgramRequest request;
    request.name = "tests/typed_elements.comp";
    request.entry = "main";
    request.spirv = module_;
    request.specialization = {{ON_PROCESSOR_ID, on_processor}};
    request.group = {16, 1, 1};
    request.bindings = 3;
    request.argument_bytes = sizeof arguments;
    run(request, {buffer(source, dtype), target, taken}, std::as_bytes(std::span(arguments)),
        {1, 1, 1});

    std::vector<std::byte> stored(target->size());
    stream_->download(*target, 0, stored);
    const std::vector<double> copied =
        HostTensor{TensorSpec::contiguous(dtype, {kItems * kOfItem}), stored.data()}.read();
    const Matrix read_by_items = read(taken, 4);
    std::vector<double> wanted(copied.size()), wanted_taken(read_by_items.values.size());
    for (std::size_t item = 0; item < kItems; ++item) {
      for (std::size_t i = 0; i < 1 + item % 4; ++i) {
        const std::size_t at = item * kOfItem + i * kStep;
        wanted[at] = wanted_taken[4 * item + i] = source.values[at];
      }
    }
    EXPECT_EQ(copied, wanted);
    for (std::size_t i = 0; i < wanted_taken.size(); ++i)
      EXPECT_EQ(read_by_items.values[i], wanted_taken[i]) << "item " << i / 4;
  }

  std::vector<std::uint32_t> module_;
};

TEST_F(TypedElements, AreCopiedByProcessorsAndGpus) {
  if (!runtime::can_compile_glsl())
    GTEST_SKIP() << "this build has no libshaderc, which compiles the kernel of this test";
  open(probe_vulkan(), Feature::kStorage16);
  if (IsSkipped()) return;
  module_ = runtime::compile_glsl("tests/typed_elements.comp",
                                  kernel_text("typed_elements.comp", {"shaders", "src"}), {});
  for (const std::uint32_t on_processor : {0U, 1U}) {
    copy(DType::kF32, DTYPE_F32, on_processor);
    copy(DType::kF16, DTYPE_F16, on_processor);
    copy(DType::kBF16, DTYPE_BF16, on_processor);
  }
}

}  // namespace
}  // namespace tessera::device
