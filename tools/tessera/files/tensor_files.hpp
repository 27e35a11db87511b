// SPDX-License-Identifier: Apache-2.0
// Tensors in files: NumPy .npy (formats 1 to 3) and safetensors. A file is hostile until it has
// been checked: whatever is wrong with it is a FileError of one sentence that names the file, and
// nothing is allocated on the word of a header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/error.hpp"
#include "tessera/tensor.hpp"

namespace tessera::tool {

class FileError : public Error {
 public:
  using Error::Error;
};

// What an element in a file may be: more than the library computes with, see convert.hpp.
enum class ElementType : std::uint8_t {
  kBool,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kE4M3FN,
  kE5M2,
};
std::size_t size_of(ElementType type);
std::string_view to_string(ElementType type);  // "bool", "i8", … "bf16", … "e4m3fn", …
bool is_floating(ElementType type);

struct FileTensor {
  ElementType type = ElementType::kF32;
  Shape shape;
  std::vector<std::byte> bytes;  // row-major, in the byte order of this machine
};
using FileTensors = std::map<std::string, FileTensor, std::less<>>;

inline constexpr std::size_t kMaxRank = 32;
inline constexpr std::uint64_t kMaxHeaderBytes = 16U << 20U;

// C and Fortran order, either byte order. Refuses bytes after the data.
FileTensor read_npy(const std::filesystem::path& file);
// Has .npy a name for it? It has none for bf16 and 8-bit floats.
bool has_npy_name(ElementType type);
// Format 1.0, C order. The target is replaced as a whole or not at all. Throws for what has no name
// there.
void write_npy(const std::filesystem::path& file, const FileTensor& tensor);

// Refuses gaps, overlaps, duplicates and bytes after the data.
FileTensors read_safetensors(const std::filesystem::path& file);
void write_safetensors(const std::filesystem::path& file, const FileTensors& tensors);

// Bytes of a row-major tensor; nothing when a product overflows or a dimension is negative.
// Dimensions of 0 don't hide an overflow of the others: strides are computed from those too.
std::optional<std::uint64_t> checked_bytes(ElementType type, const Shape& shape);

// Text from a file, for a message: quoted, shortened, printable().
std::string quote(std::string_view text);

}  // namespace tessera::tool
