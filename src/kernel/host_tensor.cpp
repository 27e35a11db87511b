// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/system/out_of_memory.hpp"
#include "base/tensors/byte_range.hpp"
#include "kernel/elements.hpp"
#include "kernel/repeated.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera {
namespace {

using kernel::for_all_runs;
using kernel::for_each_run;
using kernel::load_nibble;
using kernel::Run;
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

template <DType kDType>
double load_as_double(const std::byte* data, std::size_t element) {
  switch (kDType) {
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
}

template <DType kDType>
void store_from_double(std::byte* data, std::size_t element, double value) {
  switch (kDType) {
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

// Calls use.operator()<dtype>(), compiled for each of them.
template <class Use>
void with(DType dtype, Use use) {
  switch (dtype) {
    case DType::kF32:
      return use.template operator()<DType::kF32>();
    case DType::kF16:
      return use.template operator()<DType::kF16>();
    case DType::kBF16:
      return use.template operator()<DType::kBF16>();
    case DType::kI32:
      return use.template operator()<DType::kI32>();
    case DType::kU8:
      return use.template operator()<DType::kU8>();
    case DType::kF64:
      return use.template operator()<DType::kF64>();
    case DType::kI8:
      return use.template operator()<DType::kI8>();
    case DType::kI4:
      return use.template operator()<DType::kI4>();
    case DType::kU4:
      return use.template operator()<DType::kU4>();
    case DType::kE4M3FN:
      return use.template operator()<DType::kE4M3FN>();
    case DType::kE5M2:
      return use.template operator()<DType::kE5M2>();
  }
  throw InvalidArgument("a tensor has an unknown dtype");
}

// Calls visit(run) for all of a tensor's runs, for writing: on several threads where no two of them
// write to one byte.
template <class Visit>
void for_written_runs(const TensorSpec& spec, Visit visit) {
  const bool whole_bytes =
      !is_packed(spec.dtype) || spec.shape.empty() || spec.shape.back() % 2 == 0;
  if (whole_bytes && has_distinct_elements(spec)) return for_all_runs(spec, visit);
  for_each_run(spec, 0, spec.elements(), visit);
}

}  // namespace

std::vector<double> HostTensor::read() const try {
  check(*this);
  std::vector<double> values(static_cast<std::size_t>(spec.elements()));
  with(spec.dtype, [&]<DType kDType>() {
    for_all_runs(spec, [&](const Run& run) {
      for (std::size_t i = 0; i < run.count; ++i)
        values[run.flat + i] = load_as_double<kDType>(data, run.element + i * run.stride);
    });
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
  with(spec.dtype, [&]<DType kDType>() {
    for_written_runs(spec, [&](const Run& run) {
      for (std::size_t i = 0; i < run.count; ++i)
        store_from_double<kDType>(data, run.element + i * run.stride, values[run.flat + i]);
    });
  });
} catch (...) {
  rethrow_as_error();
}

void kernel::write_repeated(HostTensor& tensor, std::span<const double> values) {
  const TensorSpec& spec = tensor.spec;
  const DType dtype = spec.dtype;
  if (values.size() >= static_cast<std::size_t>(spec.elements())) return tensor.write(values);
  // Rounded once, and copied from there on.
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> rounded((values.size() * bits_of(dtype) + 7) / 8);
  HostTensor{.spec = TensorSpec::contiguous(dtype, {count}), .data = rounded.data()}.write(values);
  for_written_runs(spec, [&](const Run& run) {
    const bool bytes = run.stride == 1 && !is_packed(dtype);
    for (std::size_t i = 0; i < run.count;) {
      const std::size_t from = (run.flat + i) % values.size();
      const std::size_t most = std::min(run.count - i, values.size() - from);
      const std::size_t to = run.element + i * run.stride;
      if (bytes) copy_elements(dtype, rounded.data(), from, tensor.data, to, most);
      for (std::size_t j = 0; !bytes && j < most; ++j)
        copy_element(dtype, rounded.data(), from + j, tensor.data, to + j * run.stride);
      i += most;
    }
  });
}

}  // namespace tessera
