// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>

#include "temporary_files.hpp"
#include "tessera/files/tensor_files.hpp"

namespace tessera::tool {
namespace {

using std::string_literals::operator""s;

constexpr std::array kTypes{ElementType::kBool, ElementType::kI8,     ElementType::kU8,
                            ElementType::kI16,  ElementType::kU16,    ElementType::kI32,
                            ElementType::kU32,  ElementType::kI64,    ElementType::kU64,
                            ElementType::kF16,  ElementType::kBF16,   ElementType::kF32,
                            ElementType::kF64,  ElementType::kE4M3FN, ElementType::kE5M2};

std::string with_length(const std::string& header, const std::string& data, std::uint64_t length) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text + header + data;
}

std::string file_of(const std::string& header, const std::string& data) {
  return with_length(header, data, header.size());
}

class Safetensors : public TemporaryFiles {
 protected:
  FileTensors read(const std::string& text) const {
    return read_safetensors(write("in.safetensors", text));
  }

  std::string refusal(const std::string& text) const {
    try {
      read(text);
    } catch (const FileError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("in.safetensors"), std::string::npos) << what;
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      return what;
    }
    ADD_FAILURE() << "not refused: " << text.substr(0, 200);
    return "";
  }
};

FileTensors one_of_each() {
  FileTensors tensors;
  for (const ElementType type : kTypes) {
    FileTensor tensor{type, {3, 1}, {}};
    tensor.bytes.resize(3 * size_of(type), static_cast<std::byte>(tensors.size() + 1));
    tensors.emplace("a tensor of " + std::string(to_string(type)) + " \"é\"", std::move(tensor));
  }
  tensors.emplace("scalar", FileTensor{ElementType::kF32, {}, std::vector<std::byte>(4)});
  tensors.emplace("empty", FileTensor{ElementType::kF64, {4, 0}, {}});
  return tensors;
}

TEST_F(Safetensors, KeepsEveryTypeAndShape) {
  const FileTensors tensors = one_of_each();
  write_safetensors(path("t.safetensors"), tensors);
  const FileTensors back = read_safetensors(path("t.safetensors"));
  ASSERT_EQ(back.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(back.contains(name)) << name;
    EXPECT_EQ(back.at(name).type, tensor.type);
    EXPECT_EQ(back.at(name).shape, tensor.shape);
    EXPECT_EQ(back.at(name).bytes, tensor.bytes);
  }
}

TEST_F(Safetensors, KeepsAnEmptyFile) {
  write_safetensors(path("t.safetensors"), {});
  EXPECT_TRUE(read_safetensors(path("t.safetensors")).empty());
}

TEST_F(Safetensors, AlignsTheData) {
  write_safetensors(path("t.safetensors"), one_of_each());
  std::uint64_t length = 0;
  std::memcpy(&length, content(path("t.safetensors")).data(), 8);
  EXPECT_EQ(length % 8, 0U);
}

TEST_F(Safetensors, ReadsWhatOthersWrite) {
  const FileTensors tensors =
      read(file_of(R"({"__metadata__":{"format":"pt"},"b":{"data_offsets":[4,8],"shape":[2],)"
                   R"("dtype":"BF16"},"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}}   )",
                   "\1\0\0\0\x80\x3f\x00\xc0"s));
  EXPECT_EQ(tensors.at("a").bytes[0], std::byte{1});
  EXPECT_EQ(tensors.at("b").type, ElementType::kBF16);
  EXPECT_EQ(tensors.at("b").bytes[3], std::byte{0xc0});
}

TEST_F(Safetensors, RefusesEveryTruncationAndEveryAddition) {
  write_safetensors(path("whole"), {{"q", {ElementType::kF16, {2, 2}, std::vector<std::byte>(8)}},
                                    {"k", {ElementType::kU8, {3}, std::vector<std::byte>(3)}}});
  const std::string whole = content(path("whole"));
  for (std::size_t size = 0; size < whole.size(); ++size) refusal(whole.substr(0, size));
  EXPECT_NE(refusal(whole + '\0').find("after its last tensor"), std::string::npos);
}

TEST_F(Safetensors, SurvivesEveryBitFlip) {
  write_safetensors(path("whole"), {{"q", {ElementType::kF16, {2, 2}, std::vector<std::byte>(8)}},
                                    {"k", {ElementType::kU8, {3}, std::vector<std::byte>(3)}}});
  const std::string whole = content(path("whole"));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    try {
      for (const auto& [name, tensor] : read(flipped)) {
        EXPECT_EQ(tensor.bytes.size(), checked_bytes(tensor.type, tensor.shape));
      }
    } catch (const FileError&) {
      continue;  // the sentence is for the other tests
    }
  }
}

TEST_F(Safetensors, RefusesBadEntries) {
  const std::string data(8, '\0');
  for (
      const char* entry : {
          R"({"dtype":"F6_E2M3","shape":[8],"data_offsets":[0,8]})",
          R"({"dtype":"f32","shape":[2],"data_offsets":[0,8]})",
          R"({"dtype":7,"shape":[2],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":["2"],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})",
          R"({"dtype":"F32","shape":[0,4611686018427387904,8],"data_offsets":[0,0]})",
          R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})",
          R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})",
          R"({"dtype":"F32","shape":[2],"data_offsets":[1,9]})",
          R"({"dtype":"F32","shape":[2],"data_offsets":[18446744073709551607,18446744073709551615]})",
          R"({"dtype":"F32","shape":[2],"data_offsets":[0]})",
          R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})",
          R"({"dtype":"F32","shape":[2],"data_offsets":{"0":8}})",
          R"({"dtype":"F32","shape":[2]})",
          R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1})",
          R"({"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})",
          R"([])",
          R"(null)",
          R"("F32")",
      }) {
    refusal(file_of("{\"a\":" + std::string(entry) + "}", data));
  }
  std::string many = "2";
  for (std::size_t i = 0; i < kMaxRank; ++i) many += ",1";
  const std::string rest = R"(],"data_offsets":[0,8]}})";
  refusal(file_of(R"({"a":{"dtype":"F32","shape":[)" + many + rest, data));
}

TEST_F(Safetensors, RefusesGapsOverlapsAndRepeatedNames) {
  const std::string data(8, '\0');
  const auto entry = [](const char* name, const char* offsets) {
    return "\"" + std::string(name) + R"(":{"dtype":"F32","shape":[1],"data_offsets":)" + offsets +
           "}";
  };
  const auto two = [&](const std::string& a, const std::string& b) {
    return file_of("{" + a + "," + b + "}", data);
  };
  EXPECT_EQ(read(two(entry("a", "[4,8]"), entry("b", "[0,4]"))).size(), 2U);
  refusal(two(entry("a", "[0,4]"), entry("b", "[0,4]")));
  refusal(two(entry("a", "[0,4]"), entry("b", "[2,6]")));
  refusal(two(entry("a", "[0,4]"), entry("b", "[8,12]")));
  refusal(two(entry("a", "[0,4]"), entry("a", "[4,8]")));
  refusal(file_of("{" + entry("a", "[4,8]") + "}", data));
  refusal(file_of("{" + entry("a", "[0,4]") + "}", data));
}

TEST_F(Safetensors, RefusesBadHeaders) {
  for (const std::string& header :
       {""s, "{"s, "[]"s, "null"s, "7"s, "{}{}"s, "{} x"s, " {}"s, "{\"a\":}"s, "{'a':{}}"s,
        R"({"__metadata__":7})"s, "{\"a\xff\":{}}"s, std::string(1000, '{'),
        "{\"a\":" + std::string(1 << 20, '[') + "}", std::string(100, '\0')}) {
    refusal(file_of(header, ""));
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  EXPECT_NE(refusal(file_of(deep, "")).find("too deeply"), std::string::npos);
}

TEST_F(Safetensors, RefusesLengthsThatLie) {
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{1} << 24U, (std::uint64_t{1} << 24U) + 1,
        std::uint64_t{1} << 40U, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    refusal(with_length("{}", "", length));
  }
}

}  // namespace
}  // namespace tessera::tool
