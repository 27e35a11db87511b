// SPDX-License-Identifier: Apache-2.0
// Between what files hold and what the library computes with.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/dtype.hpp"
#include "tessera/files/tensor_files.hpp"
#include "tessera/record.hpp"

namespace tessera::tool {

struct Converted {
  std::vector<std::byte> bytes;
  std::size_t overflowed = 0;  // finite values that became infinite
};

// The elements of `tensor` as `target`, rounded to nearest even. Throws InvalidArgument, starting
// with `what`, for an integer that does not fit and for a floating value where an integer is asked
// for.
Converted convert(const FileTensor& tensor, DType target, const std::string& what);

// What files call it; i8 and u8 of packed ones, which they have no names for.
ElementType element_type(DType dtype);
// Whether elements of the file are elements of the dtype as they lie.
bool is_stored_as(ElementType file, DType dtype);

// What an operand becomes, given what its file holds: that, where the operand allows it, else f32
// for floating files, u8, i32 or what else it takes for integer files. With `asked`, a dtype that
// the user wants, floating files become that where the operand allows it. Integer files become
// `otherwise` where the operand takes no integers. Throws InvalidArgument where nothing fits.
DType operand_dtype(const Operand& operand, ElementType file, std::optional<DType> asked,
                    DType otherwise);

// A tensor that the library computed, for a file; packed elements one to a byte.
FileTensor to_file(std::vector<std::byte> bytes, DType dtype, Shape shape);
// Shorter floats as f32, exactly.
FileTensor widen_to_f32(const FileTensor& tensor);

}  // namespace tessera::tool
