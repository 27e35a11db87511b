// SPDX-License-Identifier: Apache-2.0
// A Tensor is a shared handle: a device buffer, and how to read it. Copies and views share the
// elements.
//
// Specs may be made by hand. Wherever one is used it is checked: extents, strides and the offset
// are not negative, there is one stride for each axis, and all elements lie within the buffer.
// Elements of inputs may share memory (stride 0 repeats them), those of outputs may not: in the
// order of their strides, each axis steps over all of those before it. What does not hold is
// refused with InvalidArgument. Rows of packed dtypes begin with a byte: the stride of the last
// axis is 1, and those of the others and the offset are even.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/dtype.hpp"
#include "tessera/export.hpp"

namespace tessera {

using Shape = std::vector<std::int64_t>;

// Shape, strides and place of a tensor, without its elements. Strides and offset count elements.
struct TensorSpec {
  DType dtype = DType::kF32;
  Shape shape{};
  Shape strides{};
  std::int64_t offset = 0;

  // Row-major without gaps, but for the half byte after a packed row of odd length.
  static TESSERA_API TensorSpec contiguous(DType dtype, Shape shape);
  TESSERA_API std::int64_t elements() const;  // product of the shape
  TESSERA_API std::int64_t last_element()
      const;  // largest element index that is touched, offset included; -1 = none
  TESSERA_API bool is_contiguous() const;
  TESSERA_API std::string to_string() const;  // "f16[2, 1024, 8, 64]"
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

namespace device {
class Buffer;
}

// An empty tensor, default-constructed or moved from, has no elements to be had: its views, and
// calls that take it, throw InvalidArgument.
class TESSERA_API Tensor {
 public:
  Tensor() = default;
  Tensor(TensorSpec spec, std::shared_ptr<device::Buffer> buffer)
      : spec_(std::move(spec)), buffer_(std::move(buffer)) {}

  explicit operator bool() const { return buffer_ != nullptr; }
  const TensorSpec& spec() const { return spec_; }
  DType dtype() const { return spec_.dtype; }
  const Shape& shape() const { return spec_.shape; }
  std::int64_t dim(int axis) const;  // axes below 0 count from the end
  const std::shared_ptr<device::Buffer>& buffer() const { return buffer_; }

  Tensor permute(const std::vector<int>& axes) const;  // axis i of the result is axes[i] here
  Tensor slice(int axis, std::int64_t begin,
               std::int64_t end) const;  // [begin, end) along one axis
  Tensor reshape(Shape shape) const;     // contiguous tensors only

 private:
  TensorSpec spec_;
  std::shared_ptr<device::Buffer> buffer_;
};

}  // namespace tessera
