// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/system/out_of_memory.hpp"
#include "base/tensors/byte_range.hpp"
#include "kernel/elements.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera {
namespace {

using kernel::for_each_element;
using kernel::load_nibble;
using kernel::store_nibble;

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

// Rounded to nearest even; what is beyond the type becomes its end, NaN 0.
std::int64_t to_integer(double value, double least, double most) {
  if (std::isnan(value)) return 0;
  return std::llrint(std::clamp(value, least, most));
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
    case DType::kI8:
      return load<std::int8_t>(data, element);
    case DType::kI4:
      return static_cast<int>(load_nibble(data, element) ^ 8U) - 8;
    case DType::kU4:
      return load_nibble(data, element);
    case DType::kE4M3FN:
      return from_e4m3fn_bits(load<std::uint8_t>(data, element));
    case DType::kE5M2:
      return from_e5m2_bits(load<std::uint8_t>(data, element));
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
      return store(data, element,
                   static_cast<std::int32_t>(to_integer(value, -0x1p31, 0x1p31 - 1)));
    case DType::kU8:
      return store(data, element, static_cast<std::uint8_t>(to_integer(value, 0, 255)));
    case DType::kF64:
      return store(data, element, value);
    case DType::kI8:
      return store(data, element, static_cast<std::int8_t>(to_integer(value, -128, 127)));
    case DType::kI4:
      return store_nibble(data, element, static_cast<unsigned>(to_integer(value, -8, 7)));
    case DType::kU4:
      return store_nibble(data, element, static_cast<unsigned>(to_integer(value, 0, 15)));
    case DType::kE4M3FN:
      return store(data, element, to_e4m3fn_bits(value));
    case DType::kE5M2:
      return store(data, element, to_e5m2_bits(value));
  }
}

}  // namespace

std::vector<double> HostTensor::read() const try {
  check(*this);
  std::vector<double> values(static_cast<std::size_t>(spec.elements()));
  for_each_element(spec, [&](std::size_t flat, std::size_t element) {
    values[flat] = load_as_double(spec.dtype, data, element);
  });
  return values;
} catch (...) {
  rethrow_as_error();
}

void HostTensor::write(std::span<const double> values) try {
  check(*this);
  if (values.size() != static_cast<std::size_t>(spec.elements())) {
    throw InvalidArgument("HostTensor::write: " + std::to_string(values.size()) + " values for " +
                          spec.to_string());
  }
  for_each_element(spec, [&](std::size_t flat, std::size_t element) {
    store_from_double(spec.dtype, data, element, values[flat]);
  });
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
