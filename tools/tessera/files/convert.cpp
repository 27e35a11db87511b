// SPDX-License-Identifier: Apache-2.0
#include "tessera/files/convert.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/tensors/byte_range.hpp"

namespace tessera::tool {
namespace {

bool is_floating(DType dtype) { return tool::is_floating(element_type(dtype)); }

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T, class Use>
void each(const FileTensor& tensor, Use use) {
  for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(T)) {
    use(load<T>(tensor.bytes.data() + at));
  }
}

// Calls use(double) or, for integers, use(std::int64_t) or use(std::uint64_t), for each element.
template <class Use>
void each_value(const FileTensor& tensor, Use use) {
  const auto signed_value = [&](auto value) { use(static_cast<std::int64_t>(value)); };
  const auto unsigned_value = [&](auto value) { use(static_cast<std::uint64_t>(value)); };
  const auto real = [&](auto value) { use(static_cast<double>(value)); };
  switch (tensor.type) {
    case ElementType::kBool:
      return each<std::uint8_t>(tensor, [&](std::uint8_t v) { unsigned_value(v != 0 ? 1U : 0U); });
    case ElementType::kI8:
      return each<std::int8_t>(tensor, signed_value);
    case ElementType::kU8:
      return each<std::uint8_t>(tensor, unsigned_value);
    case ElementType::kI16:
      return each<std::int16_t>(tensor, signed_value);
    case ElementType::kU16:
      return each<std::uint16_t>(tensor, unsigned_value);
    case ElementType::kI32:
      return each<std::int32_t>(tensor, signed_value);
    case ElementType::kU32:
      return each<std::uint32_t>(tensor, unsigned_value);
    case ElementType::kI64:
      return each<std::int64_t>(tensor, signed_value);
    case ElementType::kU64:
      return each<std::uint64_t>(tensor, unsigned_value);
    case ElementType::kF16:
      return each<std::uint16_t>(tensor, [&](std::uint16_t v) { real(from_half_bits(v)); });
    case ElementType::kBF16:
      return each<std::uint16_t>(tensor, [&](std::uint16_t v) { real(from_bfloat16_bits(v)); });
    case ElementType::kF32:
      return each<float>(tensor, real);
    case ElementType::kF64:
      return each<double>(tensor, real);
    case ElementType::kE4M3FN:
      return each<std::uint8_t>(tensor, [&](std::uint8_t v) { real(from_e4m3fn_bits(v)); });
    case ElementType::kE5M2:
      return each<std::uint8_t>(tensor, [&](std::uint8_t v) { real(from_e5m2_bits(v)); });
  }
}

// Appends values of one target type.
template <class T>
class Sink {
 public:
  explicit Sink(const FileTensor& tensor) {
    result_.bytes.resize(tensor.bytes.size() / size_of(tensor.type) * sizeof(T));
  }
  void put(T value) {
    std::memcpy(result_.bytes.data() + at_, &value, sizeof(T));
    at_ += sizeof(T);
  }
  void count_overflow() { ++result_.overflowed; }
  Converted take() { return std::move(result_); }

 private:
  Converted result_;
  std::size_t at_ = 0;
};

template <class T, class Round>
Converted to_floating(const FileTensor& tensor, Round round) {
  Sink<T> sink(tensor);
  each_value(tensor, [&](auto value) {
    const auto wide = static_cast<double>(value);
    const auto [stored, seen] = round(wide);
    if (std::isinf(seen) && std::isfinite(wide)) sink.count_overflow();
    sink.put(stored);
  });
  return sink.take();
}

template <class T>
Converted to_integer(const FileTensor& tensor, const std::string& what) {
  Sink<T> sink(tensor);
  each_value(tensor, [&](auto value) {
    if constexpr (std::is_integral_v<decltype(value)>) {
      if (!std::in_range<T>(value)) {
        throw InvalidArgument(what + " holds " + std::to_string(value) + ", which does not fit " +
                              std::string(to_string(kDTypeOf<T>)));
      }
      sink.put(static_cast<T>(value));
    }
  });
  return sink.take();
}

// As a contiguous tensor has them.
Converted to_packed(const FileTensor& tensor, DType target, const std::string& what) {
  const std::int64_t least = target == DType::kI4 ? -8 : 0, most = least + 15;
  std::vector<double> values;
  each_value(tensor, [&](auto value) {
    if constexpr (std::is_integral_v<decltype(value)>) {
      if (std::cmp_less(value, least) || std::cmp_greater(value, most)) {
        throw InvalidArgument(what + " holds " + std::to_string(value) + ", which does not fit " +
                              std::string(to_string(target)));
      }
      values.push_back(static_cast<double>(value));
    }
  });
  HostTensor packed{.spec = TensorSpec::contiguous(target, tensor.shape)};
  Converted result;
  result.bytes.resize(byte_range(packed.spec, {}).end);
  packed.data = result.bytes.data();
  packed.write(values);
  return result;
}

}  // namespace

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ElementType::kF32;
    case DType::kF16:
      return ElementType::kF16;
    case DType::kBF16:
      return ElementType::kBF16;
    case DType::kI32:
      return ElementType::kI32;
    case DType::kU8:
      return ElementType::kU8;
    case DType::kF64:
      return ElementType::kF64;
    case DType::kI8:
    case DType::kI4:
      return ElementType::kI8;
    case DType::kU4:
      return ElementType::kU8;
    case DType::kE4M3FN:
      return ElementType::kE4M3FN;
    case DType::kE5M2:
      return ElementType::kE5M2;
  }
  throw InvalidArgument("a dtype that files have no name for");
}

bool is_stored_as(ElementType file, DType dtype) {
  return !is_packed(dtype) && file == element_type(dtype);
}

Converted convert(const FileTensor& tensor, DType target, const std::string& what) {
  if (is_stored_as(tensor.type, target)) return {tensor.bytes, 0};
  if (!is_floating(target) && tool::is_floating(tensor.type)) {
    throw InvalidArgument(what + " holds " + std::string(to_string(tensor.type)) + "; " +
                          std::string(to_string(target)) + " is needed");
  }
  switch (target) {
    case DType::kF32:
      return to_floating<float>(tensor, [](double value) {
        const auto stored = static_cast<float>(value);
        return std::pair(stored, static_cast<double>(stored));
      });
    case DType::kF16:
      return to_floating<std::uint16_t>(tensor, [](double value) {
        const std::uint16_t bits = to_half_bits(value);
        return std::pair(bits, static_cast<double>(from_half_bits(bits)));
      });
    case DType::kBF16:
      return to_floating<std::uint16_t>(tensor, [](double value) {
        const std::uint16_t bits = to_bfloat16_bits(value);
        return std::pair(bits, static_cast<double>(from_bfloat16_bits(bits)));
      });
    case DType::kF64:
      return to_floating<double>(tensor, [](double value) { return std::pair(value, value); });
    case DType::kI32:
      return to_integer<std::int32_t>(tensor, what);
    case DType::kU8:
      return to_integer<std::uint8_t>(tensor, what);
    case DType::kI8:
      return to_integer<std::int8_t>(tensor, what);
    case DType::kI4:
    case DType::kU4:
      return to_packed(tensor, target, what);
    case DType::kE4M3FN:
      return to_floating<std::uint8_t>(tensor, [](double value) {
        const std::uint8_t bits = to_e4m3fn_bits(value);
        return std::pair(bits, static_cast<double>(from_e4m3fn_bits(bits)));
      });
    case DType::kE5M2:
      return to_floating<std::uint8_t>(tensor, [](double value) {
        const std::uint8_t bits = to_e5m2_bits(value);
        return std::pair(bits, static_cast<double>(from_e5m2_bits(bits)));
      });
  }
  throw InvalidArgument(what + " has a dtype that files have no name for");
}

DType operand_dtype(const Operand& operand, ElementType file, std::optional<DType> asked,
                    DType otherwise) {
  const auto allows = [&](DType dtype) {
    return operand.dtypes.empty() ||
           std::find(operand.dtypes.begin(), operand.dtypes.end(), dtype) != operand.dtypes.end();
  };
  for (const DType dtype :
       {DType::kI8, DType::kE4M3FN, DType::kE5M2}) {  // as they lie, or not at all by default
    if (is_stored_as(file, dtype) && !operand.dtypes.empty() && allows(dtype)) return dtype;
  }
  const bool narrow = file == ElementType::kBool || file == ElementType::kU8;
  std::vector<DType> order;
  if (!tool::is_floating(file)) {
    order = narrow ? std::vector{DType::kU8, DType::kI32, DType::kI8, DType::kU4, DType::kI4}
                   : std::vector{DType::kI32, DType::kU8, DType::kI8, DType::kI4, DType::kU4};
    order.push_back(asked.value_or(otherwise));
  } else if (asked) {
    order = {*asked};
  }
  constexpr std::array kFloating{DType::kF32, DType::kF64, DType::kF16, DType::kBF16};
  for (const DType dtype : kFloating) {
    if (!asked && element_type(dtype) == file) order.push_back(dtype);
  }
  order.insert(order.end(), kFloating.begin(), kFloating.end());
  for (const DType dtype : order) {
    if (allows(dtype)) return dtype;
  }
  std::string allowed;
  for (const DType dtype : operand.dtypes) {
    allowed += (allowed.empty() ? "" : ", ") + std::string(to_string(dtype));
  }
  throw InvalidArgument("operand '" + operand.name + "' takes " + allowed + ", not " +
                        std::string(to_string(file)));
}

FileTensor to_file(std::vector<std::byte> bytes, DType dtype, Shape shape) {
  if (is_packed(dtype)) {
    const std::vector<double> values =
        HostTensor{TensorSpec::contiguous(dtype, shape), bytes.data()}.read();
    bytes.resize(values.size());
    std::ranges::transform(values, bytes.begin(), [](double value) {
      return static_cast<std::byte>(static_cast<int>(value));
    });
  }
  return {element_type(dtype), std::move(shape), std::move(bytes)};
}

FileTensor widen_to_f32(const FileTensor& tensor) {
  return {ElementType::kF32, tensor.shape, convert(tensor, DType::kF32, "").bytes};
}

}  // namespace tessera::tool
