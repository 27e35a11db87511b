// SPDX-License-Identifier: Apache-2.0
// Damaged files of tensors and masks: a FileError of one sentence that names the file, or a tensor
// that is whole; never more memory than the file has bytes for.
#include "support/mutations.hpp"
#include "temporary_files.hpp"
#include "tessera/files/convert.hpp"
#include "tessera/files/tensor_files.hpp"

namespace tessera::tool {
namespace {

class MutatedFiles : public TemporaryFiles {
 protected:
  // `read` takes a file and gives its tensors. Some of them are whole, some are not.
  template <class Read>
  void check(const std::string& name, const std::string& whole, Read read) {
    testing::Mutations mutations;
    int refused = 0;
    for (int n = 0; n < testing::kMutations; ++n) {
      const std::string text = mutations.next(whole);
      const std::filesystem::path file = write(name, text);
      SCOPED_TRACE("seed " + std::to_string(mutations.seed()));
      try {
        std::size_t bytes = 0;
        for (const auto& [tensor_name, tensor] : FileTensors(read(file))) {
          ASSERT_EQ(tensor.bytes.size(), checked_bytes(tensor.type, tensor.shape));
          bytes += tensor.bytes.size();
        }
        ASSERT_LT(bytes, text.size());
      } catch (const FileError& error) {
        const std::string what = error.what();
        ASSERT_NE(what.find(name), std::string::npos) << what;
        for (const char c : what) ASSERT_GE(static_cast<unsigned char>(c), 0x20) << what;
        ++refused;
      }
      ASSERT_EQ(content(file), text);
      ASSERT_EQ(content(path("neighbour")), "untouched");
    }
    EXPECT_GT(refused, testing::kMutations / 4);
    EXPECT_LT(refused, testing::kMutations);
  }

  void SetUp() override { write("neighbour", "untouched"); }
};

FileTensor of_ones(ElementType type, Shape shape) {
  FileTensor tensor{type, std::move(shape), {}};
  tensor.bytes.resize(checked_bytes(type, tensor.shape).value(), std::byte{1});
  return tensor;
}

FileTensors npy(const std::filesystem::path& file) { return {{"", read_npy(file)}}; }

TEST_F(MutatedFiles, Npy) {
  write_npy(path("whole.npy"), of_ones(ElementType::kF32, {3, 5, 7}));
  check("in.npy", content(path("whole.npy")), npy);
}

// As `tessera run` reads them: bool or u8, anything but 0 is visible.
TEST_F(MutatedFiles, Masks) {
  write_npy(path("mask.npy"), of_ones(ElementType::kBool, {1, 1, 9, 9}));
  check("in.npy", content(path("mask.npy")), [](const std::filesystem::path& file) {
    const FileTensor mask = read_npy(file);
    try {
      const Converted seen = convert(mask, DType::kU8, "attention_mask");
      EXPECT_EQ(seen.bytes.size(), mask.bytes.size() / size_of(mask.type));
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("attention_mask"), std::string::npos);
    }
    return FileTensors{{"", mask}};
  });
}

TEST_F(MutatedFiles, Safetensors) {
  FileTensors tensors{{"query", of_ones(ElementType::kF16, {2, 3, 1, 4})},
                      {"a mask", of_ones(ElementType::kBool, {3, 3})},
                      {"empty", of_ones(ElementType::kBF16, {0, 4})}};
  write_safetensors(path("whole.safetensors"), tensors);
  check("in.safetensors", content(path("whole.safetensors")), read_safetensors);
}

}  // namespace
}  // namespace tessera::tool
