// SPDX-License-Identifier: Apache-2.0
#include "base/tensors/byte_range.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/tensors/checked.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

[[noreturn]] void refuse(const TensorSpec& spec, Whose whose, const std::string& why) {
  std::string text(whose.call);
  if (!text.empty()) text += ": ";
  text.append(whose.name).append(" ").append(spec.to_string()).append(" ").append(why);
  throw InvalidArgument(text);
}

std::string along(std::size_t axis) { return " along axis " + std::to_string(axis); }

// The product of the extents, which are not negative.
std::optional<std::int64_t> element_count(const Shape& shape) {
  if (std::ranges::count(shape, 0) > 0) return 0;
  std::optional<std::int64_t> count = 1;
  for (const std::int64_t extent : shape) {
    count = checked_mul(*count, extent);
    if (!count) break;
  }
  return count;
}

// The largest index of an element of a tensor that has some.
std::optional<std::int64_t> last_index(const TensorSpec& spec) {
  std::optional<std::int64_t> last = spec.offset;
  for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
    const auto reach = checked_mul(spec.shape[axis] - 1, spec.strides[axis]);
    if (!reach) return std::nullopt;
    last = checked_add(*last, *reach);
    if (!last) break;
  }
  return last;
}

// Bytes that hold so many elements from the beginning of a byte on.
std::optional<std::int64_t> bytes_of(std::int64_t elements, DType dtype) {
  if (is_packed(dtype)) return elements / 2 + elements % 2;
  return checked_mul(elements, static_cast<std::int64_t>(size_of(dtype)));
}

// Rows of packed elements begin with a byte.
void check_packed(const TensorSpec& spec, Whose whose) {
  if (spec.offset % 2 != 0)
    refuse(spec, whose, "starts within a byte, at offset " + std::to_string(spec.offset));
  for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
    const std::int64_t stride = spec.strides[axis];
    const bool is_last = axis + 1 == spec.shape.size();
    if (spec.shape[axis] <= 1 || (is_last ? stride == 1 : stride % 2 == 0)) continue;
    refuse(spec, whose,
           is_last ? "is packed and has not stride 1" + along(axis)
                   : "has rows that start within a byte, with stride " + std::to_string(stride) +
                         along(axis));
  }
}

// An axis that does not step over those before it, in the order of strides, which reach so far.
struct Repeating {
  std::size_t axis;
  std::int64_t reach;
};

std::optional<Repeating> repeating_axis(const TensorSpec& spec) {
  if (std::ranges::count(spec.shape, 0) > 0) return {};
  std::vector<std::size_t> axes(spec.shape.size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  std::erase_if(axes, [&](std::size_t axis) { return spec.shape[axis] == 1; });
  std::ranges::stable_sort(axes, {}, [&](std::size_t axis) { return spec.strides[axis]; });
  std::int64_t reach = 0;
  for (const std::size_t axis : axes) {
    if (spec.strides[axis] <= reach) return Repeating{.axis = axis, .reach = reach};
    reach += (spec.shape[axis] - 1) * spec.strides[axis];
  }
  return {};
}

}  // namespace

ByteRange byte_range(const TensorSpec& spec, Whose whose, std::uint64_t buffer_bytes) {
  if (spec.strides.size() != spec.shape.size())
    refuse(spec, whose, "has not one stride for each axis");
  if (spec.offset < 0)
    refuse(spec, whose, "starts at the negative offset " + std::to_string(spec.offset));
  for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
    if (spec.shape[axis] < 0) refuse(spec, whose, "has a negative extent" + along(axis));
    if (spec.strides[axis] < 0) refuse(spec, whose, "has a negative stride" + along(axis));
  }
  if (is_packed(spec.dtype)) check_packed(spec, whose);
  const auto count = element_count(spec.shape);
  if (!count || !bytes_of(*count, spec.dtype))
    refuse(spec, whose, "has more elements than 64 bits can count");
  if (*count == 0) return {};

  const auto last = last_index(spec);
  const auto elements = last ? checked_add(*last, 1) : std::nullopt;
  const auto end = elements ? bytes_of(*elements, spec.dtype) : std::nullopt;
  if (!end) refuse(spec, whose, "reaches beyond what 64 bits can address");
  const ByteRange range{static_cast<std::uint64_t>(*bytes_of(spec.offset, spec.dtype)),
                        static_cast<std::uint64_t>(*end)};
  if (range.end > buffer_bytes) {
    refuse(spec, whose,
           "reaches byte " + std::to_string(range.end) + " of a buffer of " +
               std::to_string(buffer_bytes));
  }
  return range;
}

void check_distinct_elements(const TensorSpec& spec, Whose whose) {
  const std::optional<Repeating> repeating = repeating_axis(spec);
  if (!repeating) return;
  const std::int64_t stride = spec.strides[repeating->axis];
  std::string why =
      "is written to and has stride " + std::to_string(stride) + along(repeating->axis);
  if (stride > 0)
    why += ", within the " + std::to_string(repeating->reach + 1) + " elements of other axes";
  refuse(spec, whose, why);
}

bool has_distinct_elements(const TensorSpec& spec) { return !repeating_axis(spec); }

}  // namespace tessera
