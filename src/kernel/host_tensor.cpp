// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "base/byte_range.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera {
namespace {

// Calls visit(flat, element) for every element, row-major; `element` is the index in memory, offset
// included.
template <class Visit>
void for_each_element(const TensorSpec& spec, Visit visit) {
  const std::size_t rank = spec.shape.size();
  const std::int64_t count = spec.elements();
  std::vector<std::int64_t> index(rank, 0);
  std::int64_t element = spec.offset;
  for (std::int64_t flat = 0; flat < count; ++flat) {
    visit(static_cast<std::size_t>(flat), static_cast<std::size_t>(element));
    for (std::size_t axis = rank; axis-- > 0;) {
      element += spec.strides[axis];
      if (++index[axis] < spec.shape[axis]) break;
      element -= spec.strides[axis] * spec.shape[axis];
      index[axis] = 0;
    }
  }
}

// Callers make these by hand, too.
void check(const HostTensor& tensor) {
  if (byte_range(tensor.spec, {}).end > 0 && tensor.data == nullptr)
    throw InvalidArgument("tensor " + tensor.spec.to_string() + " has no elements in host memory");
}

template <class T>
T load(const std::byte* data, std::size_t element) {
  T value;
  std::memcpy(&value, data + element * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* data, std::size_t element, T value) {
  std::memcpy(data + element * sizeof(T), &value, sizeof(T));
}

double load_as_double(DType dtype, const std::byte* data, std::size_t element) {
  switch (dtype) {
    case DType::kF32:
      return load<float>(data, element);
    case DType::kF16:
      return from_half_bits(load<std::uint16_t>(data, element));
    case DType::kBF16:
      return from_bfloat16_bits(load<std::uint16_t>(data, element));
    case DType::kI32:
      return load<std::int32_t>(data, element);
    case DType::kU8:
      return load<std::uint8_t>(data, element);
    case DType::kF64:
      return load<double>(data, element);
  }
  throw InvalidArgument("a tensor has an unknown dtype");
}

void store_from_double(DType dtype, std::byte* data, std::size_t element, double value) {
  switch (dtype) {
    case DType::kF32:
      return store(data, element, static_cast<float>(value));
    case DType::kF16:
      return store(data, element, to_half_bits(value));
    case DType::kBF16:
      return store(data, element, to_bfloat16_bits(value));
    case DType::kI32:
      return store(data, element, static_cast<std::int32_t>(std::llrint(value)));
    case DType::kU8:
      return store(data, element, static_cast<std::uint8_t>(std::llrint(value)));
    case DType::kF64:
      return store(data, element, value);
  }
}

}  // namespace

std::vector<double> HostTensor::read() const {
  check(*this);
  std::vector<double> values(static_cast<std::size_t>(spec.elements()));
  for_each_element(spec, [&](std::size_t flat, std::size_t element) {
    values[flat] = load_as_double(spec.dtype, data, element);
  });
  return values;
}

void HostTensor::write(std::span<const double> values) {
  check(*this);
  if (values.size() != static_cast<std::size_t>(spec.elements())) {
    throw InvalidArgument("HostTensor::write: " + std::to_string(values.size()) + " values for " +
                          spec.to_string());
  }
  for_each_element(spec, [&](std::size_t flat, std::size_t element) {
    store_from_double(spec.dtype, data, element, values[flat]);
  });
}

}  // namespace tessera
