// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy: "\x93NUMPY", two version bytes, the header's length, a Python dict literal, the
// elements (numpy.org/neps/nep-0001-npy-format).
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "tessera/files/file_io.hpp"
#include "tessera/files/tensor_files.hpp"

namespace tessera::tool {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::optional<std::string> type;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

// The one dict literal that a header may be: 'descr', 'fortran_order' and 'shape', each once, in
// any order.
class HeaderParser {
 public:
  HeaderParser(const InputFile& file, std::string_view text) : file_(file), text_(text) {}

  Header parse() {
    Header header;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !header.type) {
        header.type = string();
      } else if (key == "fortran_order" && !header.fortran_order) {
        header.fortran_order = boolean();
      } else if (key == "shape" && !header.shape) {
        header.shape = tuple();
      } else {
        fail("an unexpected key " + quote(key));
      }
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (!text_.empty()) fail("text after the closing brace");
    if (!header.type || !header.fortran_order || !header.shape) {
      fail("no 'descr', 'fortran_order' or 'shape'");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    file_.fail("has a malformed header: " + what);
  }

  void skip_space() {
    const std::size_t end = text_.find_first_not_of(" \n\t\r");
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end);
  }

  bool accept(char c) {
    skip_space();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "' expected");
  }

  std::string string() {
    skip_space();
    if (text_.starts_with('[')) fail("structured elements are not read");
    const char quote = text_.empty() ? '\0' : text_.front();
    if (quote != '\'' && quote != '"') fail("a string expected");
    const std::size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) fail("a string without an end");
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return word == "True";
      }
    }
    fail("True or False expected");
  }

  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      if (shape.size() == kMaxRank) fail("more than " + std::to_string(kMaxRank) + " dimensions");
      shape.push_back(integer());
      if (accept(',')) continue;
      expect(')');
      break;
    }
    return shape;
  }

  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fail("a dimension beyond 64 bits");
    if (error != std::errc{}) fail("a dimension expected");
    if (value < 0) fail("a negative dimension");
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    if (text_.starts_with('L')) text_.remove_prefix(1);  // Python 2 wrote its long integers so
    return value;
  }

  const InputFile& file_;
  std::string_view text_;
};

struct Descr {
  ElementType type;
  bool swap;  // stored in the other byte order
};

Descr parse_descr(const InputFile& file, const std::string& text) {
  struct Name {
    std::string_view text;
    ElementType type;
  };
  static constexpr std::array<Name, 12> kNames{{{"b1", ElementType::kBool},
                                                {"i1", ElementType::kI8},
                                                {"u1", ElementType::kU8},
                                                {"i2", ElementType::kI16},
                                                {"u2", ElementType::kU16},
                                                {"i4", ElementType::kI32},
                                                {"u4", ElementType::kU32},
                                                {"i8", ElementType::kI64},
                                                {"u8", ElementType::kU64},
                                                {"f2", ElementType::kF16},
                                                {"f4", ElementType::kF32},
                                                {"f8", ElementType::kF64}}};
  const std::string_view view = text;
  const bool has_order =
      !view.empty() && std::string_view("<>=|").find(view.front()) != std::string_view::npos;
  for (const Name& name : kNames) {
    if (view.substr(has_order ? 1 : 0) != name.text) continue;
    if (has_order && view.front() == '|' && size_of(name.type) > 1) break;
    return {name.type, has_order && view.front() == '>' && size_of(name.type) > 1};
  }
  file.fail("holds elements of type " + quote(text) +
            "; f2, f4, f8, i1 to i8, u1 to u8 and b1 are read" +
            (view.ends_with("V2") || view.ends_with("V1")
                 ? " (bfloat16 and 8-bit floats have no names in .npy: use safetensors)"
                 : ""));
}

void swap_bytes(std::vector<std::byte>& bytes, std::size_t size) {
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
  }
}

// The elements of a column-major tensor in row-major order.
std::vector<std::byte> from_fortran_order(const std::vector<std::byte>& source, const Shape& shape,
                                          std::size_t size) {
  std::vector<std::byte> target(source.size());
  if (source.empty()) return target;
  std::vector<std::size_t> strides(shape.size());
  std::size_t stride = size;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    strides[axis] = stride;
    stride *= static_cast<std::size_t>(shape[axis]);
  }
  Shape index(shape.size(), 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < target.size(); to += size) {
    std::memcpy(target.data() + to, source.data() + from, size);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape[axis]) break;
      from -= strides[axis] * static_cast<std::size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return target;
}

std::string_view npy_name(ElementType type) {
  static constexpr std::array<std::string_view, 15> kNames{"|b1", "|i1", "|u1", "<i2", "<u2",
                                                           "<i4", "<u4", "<i8", "<u8", "<f2",
                                                           "",    "<f4", "<f8", "",    ""};
  return kNames.at(static_cast<std::size_t>(type));
}

}  // namespace

bool has_npy_name(ElementType type) { return !npy_name(type).empty(); }

FileTensor read_npy(const std::filesystem::path& path) {
  const InputFile file(path);
  std::array<unsigned char, 12> start{};
  const std::size_t present = std::min<std::uint64_t>(start.size(), file.size());
  file.read(0, std::as_writable_bytes(std::span(start)).first(present));
  if (present < kMagic.size() || std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    file.fail("is not a .npy file");
  }
  if (present < 10) file.fail("ends inside its header");
  const int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0) {
    file.fail("has format " + std::to_string(version) + "." + std::to_string(start[7]) +
              "; 1.0, 2.0 and 3.0 are read");
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (present < 8 + length_bytes) file.fail("ends inside its header");
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8U | start[8 + i];
  if (length > kMaxHeaderBytes) {
    file.fail("claims a header of " + std::to_string(length) + " bytes; at most " +
              std::to_string(kMaxHeaderBytes) + " are read");
  }
  const std::uint64_t data = 8 + length_bytes + length;
  if (data > file.size()) file.fail("ends inside its header");

  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(8 + length_bytes, std::as_writable_bytes(std::span(text)));
  const Header header = HeaderParser(file, text).parse();
  const Descr descr = parse_descr(file, *header.type);
  const std::optional<std::uint64_t> bytes = checked_bytes(descr.type, *header.shape);
  if (!bytes) file.fail("has a shape that overflows 64 bits");
  const std::uint64_t there = file.size() - data;
  if (there != *bytes) {
    file.fail("holds " + std::to_string(there) + " bytes of elements where its header asks for " +
              std::to_string(*bytes));
  }

  FileTensor tensor{descr.type, *header.shape, {}};
  tensor.bytes.resize(static_cast<std::size_t>(*bytes));
  file.read(data, tensor.bytes);
  if (descr.swap) swap_bytes(tensor.bytes, size_of(descr.type));
  if (*header.fortran_order && tensor.shape.size() > 1) {
    tensor.bytes = from_fortran_order(tensor.bytes, tensor.shape, size_of(descr.type));
  }
  return tensor;
}

void write_npy(const std::filesystem::path& path, const FileTensor& tensor) {
  const std::string_view type = npy_name(tensor.type);
  if (type.empty()) throw FileError(".npy has no name for " + std::string(to_string(tensor.type)));
  std::string header = "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t dimension : tensor.shape) header += std::to_string(dimension) + ", ";
  if (tensor.shape.size() > 1) header.resize(header.size() - 2);
  if (tensor.shape.size() == 1) header.pop_back();
  header += "), }";
  constexpr std::size_t kAlignment = 64;
  const std::size_t used = 10 + header.size() + 1;
  header.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  header += '\n';

  OutputFile file(path);
  file.write(kMagic);
  const std::array<char, 4> start{1, 0, static_cast<char>(header.size() & 0xffU),
                                  static_cast<char>(header.size() >> 8U)};
  file.write(std::string_view(start.data(), start.size()));
  file.write(header);
  file.write(tensor.bytes);
  file.commit();
}

}  // namespace tessera::tool
