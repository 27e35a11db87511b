// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <cstring>

#include "temporary_files.hpp"
#include "tessera/files/tensor_files.hpp"

namespace tessera::tool {
namespace {

using std::string_literals::operator""s;

constexpr std::array kNumpyTypes{ElementType::kBool, ElementType::kI8,  ElementType::kU8,
                                 ElementType::kI16,  ElementType::kU16, ElementType::kI32,
                                 ElementType::kU32,  ElementType::kI64, ElementType::kU64,
                                 ElementType::kF16,  ElementType::kF32, ElementType::kF64};

FileTensor counting(ElementType type, Shape shape) {
  FileTensor tensor{type, std::move(shape), {}};
  tensor.bytes.resize(checked_bytes(type, tensor.shape).value());
  for (std::size_t i = 0; i < tensor.bytes.size(); ++i) {
    tensor.bytes[i] = static_cast<std::byte>(i * 7 + 1);
  }
  return tensor;
}

template <class T>
std::string raw(std::initializer_list<T> values) {
  std::string text(values.size() * sizeof(T), '\0');
  std::memcpy(text.data(), values.begin(), text.size());
  return text;
}

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string text = "\x93NUMPY"s + version + '\0';
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    text += static_cast<char>(header.size() >> (8 * i) & 0xffU);
  }
  return text + header + data;
}

std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

class Npy : public TemporaryFiles {
 protected:
  FileTensor read(const std::string& text) const { return read_npy(write("in.npy", text)); }

  // The sentence that a file is refused with.
  std::string refusal(const std::string& text) const {
    try {
      read(text);
    } catch (const FileError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("in.npy"), std::string::npos) << what;
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      return what;
    }
    ADD_FAILURE() << "not refused";
    return "";
  }
};

TEST_F(Npy, KeepsEveryTypeAndShape) {
  for (const ElementType type : kNumpyTypes) {
    for (const Shape& shape :
         {Shape{}, Shape{5}, Shape{0}, Shape{2, 3}, Shape{2, 0, 4}, Shape{1, 2, 3, 4}}) {
      const FileTensor tensor = counting(type, shape);
      write_npy(path("t.npy"), tensor);
      const FileTensor back = read_npy(path("t.npy"));
      EXPECT_EQ(back.type, type);
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(back.bytes, tensor.bytes);
    }
  }
}

TEST_F(Npy, WritesWhatNumPyWrites) {
  write_npy(path("t.npy"), counting(ElementType::kF32, {3}));
  const std::string text = content(path("t.npy"));
  EXPECT_EQ(text.substr(0, 10), "\x93NUMPY\x01\x00\x76\x00"s);
  EXPECT_EQ(text.size(), 128U + 12U);
  EXPECT_EQ(text.substr(10, 59), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }  ");
  EXPECT_EQ(text[127], '\n');
}

TEST_F(Npy, RefusesToWriteBfloat16) {
  EXPECT_THROW(write_npy(path("t.npy"), counting(ElementType::kBF16, {2})), FileError);
  EXPECT_FALSE(std::filesystem::exists(path("t.npy")));
}

TEST_F(Npy, ReadsEveryVersion) {
  const std::string data = raw<float>({1, 2, 3, 4, 5, 6});
  for (const char version : {'\1', '\2', '\3'}) {
    const FileTensor tensor = read(npy(dict("'<f4'", "False", "(2, 3)"), data, version));
    EXPECT_EQ(tensor.shape, (Shape{2, 3}));
    EXPECT_EQ(std::memcmp(tensor.bytes.data(), data.data(), data.size()), 0);
  }
}

TEST_F(Npy, TurnsFortranOrderAround) {
  const FileTensor tensor =
      read(npy(dict("'<i4'", "True", "(2, 3)"), raw<std::int32_t>({1, 4, 2, 5, 3, 6})));
  const std::string expected = raw<std::int32_t>({1, 2, 3, 4, 5, 6});
  ASSERT_EQ(tensor.bytes.size(), expected.size());
  EXPECT_EQ(std::memcmp(tensor.bytes.data(), expected.data(), expected.size()), 0);

  const FileTensor deep =
      read(npy(dict("'|u1'", "True", "(2, 2, 2)"), raw<std::uint8_t>({0, 4, 2, 6, 1, 5, 3, 7})));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(deep.bytes[i], static_cast<std::byte>(i));
}

TEST_F(Npy, TurnsBigEndianAround) {
  const FileTensor tensor =
      read(npy(dict("'>i2'", "False", "(2,)"), raw<std::uint8_t>({1, 2, 3, 4})));
  const std::string expected = raw<std::int16_t>({0x0102, 0x0304});
  EXPECT_EQ(std::memcmp(tensor.bytes.data(), expected.data(), expected.size()), 0);
}

TEST_F(Npy, ReadsUnusualButValidHeaders) {
  const std::string data = raw<std::uint8_t>({1, 2});
  EXPECT_EQ(read(npy("{\"shape\":(2,),\"descr\":\"u1\",\"fortran_order\":False}", data)).shape,
            Shape{2});
  EXPECT_EQ(
      read(npy("{'shape': (2L, 1L), 'fortran_order': False, 'descr': '=u1'}   \n", data)).shape,
      (Shape{2, 1}));
  EXPECT_EQ(read(npy(dict("'|b1'", "False", "(1, 2)"), data)).type, ElementType::kBool);
}

TEST_F(Npy, RefusesEveryTruncationAndEveryAddition) {
  write_npy(path("whole.npy"), counting(ElementType::kF32, {2, 3}));
  const std::string whole = content(path("whole.npy"));
  for (std::size_t size = 0; size < whole.size(); ++size) refusal(whole.substr(0, size));
  refusal(whole + '\0');
}

TEST_F(Npy, SurvivesEveryBitFlip) {
  write_npy(path("whole.npy"), counting(ElementType::kI16, {3, 2}));
  const std::string whole = content(path("whole.npy"));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    try {
      const FileTensor tensor = read(flipped);
      EXPECT_EQ(tensor.bytes.size(), checked_bytes(tensor.type, tensor.shape));
    } catch (const FileError&) {
      continue;  // the sentence is for the other tests
    }
  }
}

TEST_F(Npy, RefusesBadDtypes) {
  for (const char* descr : {"'<f16'", "'<c8'", "'|O'", "'<U4'", "'<M8[ns]'", "'<f3'", "'|f4'", "''",
                            "'<'", "'f'", "'4'", "[('a', '<f4')]", "'<V2'", "3", "None"}) {
    refusal(npy(dict(descr, "False", "(1,)"), raw<double>({1, 2})));
  }
  EXPECT_NE(
      refusal(npy(dict("'<V2'", "False", "(1,)"), raw<std::uint16_t>({1}))).find("safetensors"),
      std::string::npos);
}

TEST_F(Npy, RefusesBadShapes) {
  for (const char* shape :
       {"(-1,)", "(9223372036854775808,)", "(99999999999999999999,)", "(4294967296, 4294967296)",
        "(0, 4611686018427387904, 4611686018427387904)", "(2305843009213693952,)", "(1.5,)", "(a,)",
        "(1", "1", "(1,,)", "(,)", "[1]", "()()", "(0x1,)", "(True,)", "(1e3,)", "(+1,)"}) {
    refusal(npy(dict("'<f4'", "False", shape), raw<float>({1})));
  }
  std::string many = "(";
  for (int i = 0; i < 1000; ++i) many += "1, ";
  refusal(npy(dict("'<f4'", "False", many + ")"), raw<float>({1})));
}

TEST_F(Npy, RefusesBadHeaders) {
  const std::string data = raw<float>({1});
  for (const std::string& header :
       {""s, "{}"s, "{"s, "}"s, "[]"s, "{'descr': '<f4'}"s,
        "{'descr': '<f4', 'fortran_order': 0, "s,
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}"s,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}"s,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x"s,
        "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}"s,
        "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}"s,
        "{'descr': '<f4', 'fortran_order': false, 'shape': (1,)}"s,
        "{descr: '<f4', 'fortran_order': False, 'shape': (1,)}"s, std::string(300, '{'),
        std::string(300, '\0'), std::string(300, '(')}) {
    refusal(npy(header, data));
  }
}

TEST_F(Npy, RefusesLengthsThatLie) {
  const std::string header = dict("'<f4'", "False", "(1,)");
  const std::string data = raw<float>({1});
  std::string text = npy(header, data, 2);
  text.replace(8, 4, "\xff\xff\xff\xff");
  refusal(text);
  text.replace(8, 4, "\x00\x00\x00\x01"s);  // 16 MiB, which are not there
  refusal(text);
  text = npy(header, data);
  text.replace(8, 2, "\xff\xff");
  refusal(text);
  EXPECT_NE(refusal(npy(header, data, 4)).find("4.0"), std::string::npos);
  EXPECT_NE(refusal(npy(header, data, 0)).find("0.0"), std::string::npos);
}

TEST_F(Npy, ShortensWhatItQuotes) {
  const std::string what =
      refusal(npy(dict("'" + std::string(5000, 'x') + "\x1b[31m'", "False", "(1,)"), ""));
  EXPECT_LT(what.size(), 1000U);
  EXPECT_EQ(what.find('\x1b'), std::string::npos);
}

TEST_F(Npy, RefusesWhatIsNoRegularFile) {
  EXPECT_THROW(read_npy(path("absent.npy")), FileError);
  EXPECT_THROW(read_npy(path("")), FileError);
  EXPECT_THROW(read_npy("/dev/zero"), FileError);
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_THROW(read_npy(path("fifo")), FileError);  // and does not wait for a writer
  std::filesystem::create_symlink(path("loop"), path("loop"));
  EXPECT_THROW(read_npy(path("loop")), FileError);
}

TEST_F(Npy, RefusesSparseGiants) {
  const std::string header = dict("'|u1'", "False", "(4398046511104,)");
  const std::filesystem::path file = write("in.npy", npy(header, ""));
  std::error_code error;
  std::filesystem::resize_file(file, (std::uintmax_t{1} << 42U) + 10 + header.size(), error);
  if (error) GTEST_SKIP() << "the file system has no files of 4 TiB";
  EXPECT_THROW(read_npy(file), FileError);
}

TEST_F(Npy, ReplacesFilesAsAWholeOrNotAtAll) {
  write("t.npy", "before");
  EXPECT_THROW(write_npy(path("t.npy"), counting(ElementType::kBF16, {2})), FileError);
  EXPECT_EQ(content(path("t.npy")), "before");
  write_npy(path("t.npy"), counting(ElementType::kU8, {2}));
  EXPECT_EQ(read_npy(path("t.npy")).shape, Shape{2});
  EXPECT_THROW(write_npy(path(""), counting(ElementType::kU8, {2})), FileError);
  EXPECT_THROW(write_npy(path("no/such/t.npy"), counting(ElementType::kU8, {2})), FileError);
  const auto entries = std::distance(std::filesystem::directory_iterator(path("")),
                                     std::filesystem::directory_iterator());
  EXPECT_EQ(entries, 1) << "temporary files are left";
}

TEST_F(Npy, WritesThroughLinksAndToDevices) {
  write("target.npy", "before");
  std::filesystem::create_symlink(path("target.npy"), path("link.npy"));
  write_npy(path("link.npy"), counting(ElementType::kU8, {2}));
  EXPECT_TRUE(std::filesystem::is_symlink(path("link.npy")));
  EXPECT_EQ(read_npy(path("target.npy")).shape, Shape{2});
  write_npy("/dev/null", counting(ElementType::kU8, {2}));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace tessera::tool
