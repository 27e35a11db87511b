// SPDX-License-Identifier: Apache-2.0
#include "tessera/tensor.hpp"

#include <algorithm>

#include "base/system/out_of_memory.hpp"
#include "base/tensors/byte_range.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

// The elements that an axis of a contiguous tensor steps over, its own last one included: packed
// rows end with a byte.
std::int64_t extent_in_memory(DType dtype, const Shape& shape, std::size_t axis) {
  const std::int64_t extent = std::max<std::int64_t>(shape[axis], 1);
  const bool is_packed_row = axis + 1 == shape.size() && is_packed(dtype);
  return is_packed_row && extent % 2 != 0 ? extent + 1 : extent;
}

Shape row_major(DType dtype, const Shape& shape) {
  Shape strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    if (__builtin_mul_overflow(stride, extent_in_memory(dtype, shape, axis), &stride)) {
      throw InvalidArgument("a tensor's shape has more elements than 64 bits can count");
    }
  }
  return strides;
}

std::string join(const Shape& values) {
  std::string text;
  for (const std::int64_t value : values)
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text;
}

// What every view asks of the tensor that it is a view of.
void check_viewed(const Tensor& tensor, const char* view) {
  if (!tensor) throw InvalidArgument(std::string(view) + ": the tensor is empty");
  byte_range(tensor.spec(), {.call = view});
}

}  // namespace

TensorSpec TensorSpec::contiguous(DType dtype, Shape shape) try {
  for (const std::int64_t extent : shape) {
    if (extent < 0)
      throw InvalidArgument("a tensor's shape [" + join(shape) + "] has a negative extent");
  }
  Shape strides = row_major(dtype, shape);
  return {.dtype = dtype, .shape = std::move(shape), .strides = std::move(strides), .offset = 0};
} catch (...) {
  rethrow_as_error();
}

std::int64_t TensorSpec::elements() const try {
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; }))
    throw InvalidArgument("tensor " + to_string() + " has a negative extent");
  if (std::ranges::count(shape, 0) > 0) return 0;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) {
      throw InvalidArgument("tensor " + to_string() + " has more elements than 64 bits can count");
    }
  }
  return count;
} catch (...) {
  rethrow_as_error();
}

std::int64_t TensorSpec::last_element() const try {
  byte_range(*this, {});
  if (std::ranges::count(shape, 0) > 0) return -1;
  std::int64_t last = offset;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) last += (shape[axis] - 1) * strides[axis];
  return last;
} catch (...) {
  rethrow_as_error();
}

bool TensorSpec::is_contiguous() const {
  if (strides.size() != shape.size()) return false;
  if (std::ranges::count(shape, 0) > 0) return true;
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != stride) return false;
    if (__builtin_mul_overflow(stride, extent_in_memory(dtype, shape, axis), &stride)) return false;
  }
  return true;
}

std::string TensorSpec::to_string() const try {
  return std::string(tessera::to_string(dtype)) + "[" + join(shape) + "]";
} catch (...) {
  rethrow_as_error();
}

std::int64_t Tensor::dim(int axis) const try {
  const auto rank = static_cast<std::int64_t>(spec_.shape.size());
  const std::int64_t at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) {
    throw InvalidArgument("dim: " + spec_.to_string() + " has no axis " + std::to_string(axis));
  }
  return spec_.shape[static_cast<std::size_t>(at)];
} catch (...) {
  rethrow_as_error();
}

Tensor Tensor::permute(const std::vector<int>& axes) const try {
  check_viewed(*this, "permute");
  const std::size_t rank = spec_.shape.size();
  std::vector<bool> seen(rank, false);
  TensorSpec result = spec_;
  bool valid = axes.size() == rank;
  for (std::size_t i = 0; valid && i < rank; ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    valid = axes[i] >= 0 && axis < rank && !seen[axis];
    if (!valid) break;
    seen[axis] = true;
    result.shape[i] = spec_.shape[axis];
    result.strides[i] = spec_.strides[axis];
  }
  if (!valid)
    throw InvalidArgument("permute: the axes are no permutation of those of " + spec_.to_string());
  return {std::move(result), buffer_};
} catch (...) {
  rethrow_as_error();
}

Tensor Tensor::slice(int axis, std::int64_t begin, std::int64_t end) const try {
  check_viewed(*this, "slice");
  const auto rank = static_cast<int>(spec_.shape.size());
  const int at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank || begin < 0 || end < begin || end > spec_.shape[at]) {
    throw InvalidArgument("slice [" + std::to_string(begin) + ", " + std::to_string(end) +
                          ") of axis " + std::to_string(axis) + " does not lie in " +
                          spec_.to_string());
  }
  TensorSpec result = spec_;
  // An empty slice has no first element, whose index might not even fit.
  if (end > begin) result.offset += begin * spec_.strides[at];
  result.shape[at] = end - begin;
  return {std::move(result), buffer_};
} catch (...) {
  rethrow_as_error();
}

Tensor Tensor::reshape(Shape shape) const try {
  check_viewed(*this, "reshape");
  TensorSpec result = TensorSpec::contiguous(spec_.dtype, std::move(shape));
  const bool has_gaps = byte_range(result, {.call = "reshape"}).end !=
                        byte_range(TensorSpec::contiguous(dtype(), spec_.shape), {}).end;
  if (!spec_.is_contiguous() || result.elements() != spec_.elements() || has_gaps) {
    throw InvalidArgument("reshape: " + spec_.to_string() +
                          " is not contiguous or has not the elements of " + result.to_string());
  }
  result.offset = spec_.offset;
  return {std::move(result), buffer_};
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
