// SPDX-License-Identifier: Apache-2.0
// An operation that changes an operand in place and finds errors in the elements of another: it
// appends rows to a cache, at slots that a table on the device says.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tessera/tessera.hpp>
#include <utility>
#include <vector>

namespace append_rows {

namespace ts = tessera;

enum Slot : std::size_t { kRows, kSlots, kCache };

// As the kernels declare it: scalars of 4 bytes.
struct Args {
  std::uint32_t features, cache_rows, rows_offset, slots_offset, cache_offset;
  std::uint32_t errors = 0;
};

inline std::string read_file(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline void validate(ts::Problem& problem) {
  const ts::TensorSpec& rows = problem.spec(kRows);
  const ts::TensorSpec& slots = problem.spec(kSlots);
  const ts::TensorSpec& cache = problem.spec(kCache);
  for (const ts::TensorSpec* spec : {&rows, &cache}) {
    if (spec->shape.size() != 2 || !spec->is_contiguous())
      throw ts::InvalidArgument("append_rows: " + spec->to_string() + " must be contiguous rows");
  }
  if (cache.shape[1] != rows.shape[1] || slots.shape != ts::Shape{rows.shape[0]} ||
      !slots.is_contiguous()) {
    throw ts::InvalidArgument("append_rows: rows " + rows.to_string() + ", slots " +
                              slots.to_string() + " and cache " + cache.to_string() +
                              " do not belong together");
  }
  problem.dtype = rows.dtype;
  problem.key = "features=" + std::to_string(rows.shape[1]);
}

// Calls use(n, slot) for the rows that have a place.
template <class Use>
void for_places(const ts::Problem& problem, std::span<ts::HostTensor> tensors, Use use) {
  const std::vector<double> slots = tensors[kSlots].read();
  const auto cache_rows = static_cast<double>(problem.spec(kCache).shape[0]);
  for (std::size_t n = 0; n < slots.size(); ++n) {
    if (slots[n] >= 0 && slots[n] < cache_rows) use(n, static_cast<std::size_t>(slots[n]));
  }
}

inline void reference(const ts::Problem& problem, std::span<ts::HostTensor> tensors) {
  const std::vector<double> rows = tensors[kRows].read();
  std::vector<double> cache = tensors[kCache].read();
  const auto features = static_cast<std::size_t>(problem.spec(kRows).shape[1]);
  for_places(problem, tensors, [&](std::size_t n, std::size_t slot) {
    for (std::size_t i = 0; i < features; ++i) cache[slot * features + i] = rows[n * features + i];
  });
  tensors[kCache].write(cache);
}

// Which elements of the cache a call writes; the others keep their bits.
inline std::vector<std::size_t> writes(const ts::Problem& problem,
                                       std::span<ts::HostTensor> tensors, std::size_t /*slot*/) {
  const auto features = static_cast<std::size_t>(problem.spec(kRows).shape[1]);
  std::vector<std::size_t> elements;
  for_places(problem, tensors, [&](std::size_t, std::size_t slot) {
    for (std::size_t i = 0; i < features; ++i) elements.push_back(slot * features + i);
  });
  return elements;
}

// What kernels raise.
inline std::vector<ts::Raised> raises(const ts::Problem& problem,
                                      std::span<ts::HostTensor> tensors) {
  std::vector<bool> is_placed(static_cast<std::size_t>(problem.spec(kSlots).elements()), false);
  for_places(problem, tensors, [&](std::size_t n, std::size_t) { is_placed[n] = true; });
  std::vector<ts::Raised> raised;
  for (std::size_t n = 0; n < is_placed.size(); ++n) {
    if (!is_placed[n]) raised.push_back({.error = 0, .index = static_cast<std::uint32_t>(n)});
  }
  return raised;
}

// A call of conformance tables and benchmarks.
inline ts::Case a_case(std::string name, std::int64_t rows, std::int64_t cache_rows,
                       std::int64_t features, std::string data) {
  return {.name = std::move(name),
          .why = "rows and cache of these sizes",
          .operands = {ts::TensorSpec::contiguous(ts::DType::kF32, {rows, features}),
                       ts::TensorSpec::contiguous(ts::DType::kI32, {rows}),
                       ts::TensorSpec::contiguous(ts::DType::kF32, {cache_rows, features})},
          .data = std::move(data)};
}

// Different slots; with data "planted" some lie outside of the cache.
inline void fill(const ts::Problem& problem, const ts::Case& shape,
                 std::span<ts::HostTensor> tensors) {
  std::mt19937_64 generator(shape.seed);
  std::normal_distribution<double> normal;
  for (const std::size_t slot : {kRows, kCache}) {
    std::vector<double> values(static_cast<std::size_t>(problem.spec(slot).elements()));
    for (double& value : values) value = normal(generator);
    tensors[slot].write(values);
  }
  std::vector<double> slots(static_cast<std::size_t>(problem.spec(kCache).shape[0]));
  std::iota(slots.begin(), slots.end(), 0.0);
  std::shuffle(slots.begin(), slots.end(), generator);
  slots.resize(static_cast<std::size_t>(problem.spec(kSlots).elements()), -1);
  if (shape.data == "planted") {
    slots.at(slots.size() / 2) = static_cast<double>(problem.spec(kCache).shape[0]);
    slots.back() = -1e9;
  }
  tensors[kSlots].write(slots);
}

// `folder`: where the kernels lie. `spirv`: the shader compiled; empty: Tessera compiles its text.
inline ts::Variant rows_variant(const std::string& folder, std::vector<std::uint32_t> spirv = {}) {
  ts::Pass pass;
  pass.name = "append";
  pass.opencl = {.text = read_file(folder + "/append_rows.cl"), .entry = "append_rows"};
  if (spirv.empty()) {
    pass.vulkan.text = read_file(folder + "/append_rows.comp");
  } else {
    pass.vulkan.spirv = std::move(spirv);
  }
  pass.bindings = {kRows, kSlots, kCache, ts::kErrors};
  pass.errors_at = offsetof(Args, errors);
  pass.groups = [](const ts::Problem& problem, const ts::Config&) {
    return ts::Dim3{static_cast<std::uint32_t>(problem.spec(kRows).shape[0])};
  };
  pass.args = [](const ts::Problem& problem, const ts::Config&) {
    return ts::argument_bytes(
        Args{.features = static_cast<std::uint32_t>(problem.spec(kRows).shape[1]),
             .cache_rows = static_cast<std::uint32_t>(problem.spec(kCache).shape[0]),
             .rows_offset = static_cast<std::uint32_t>(problem.spec(kRows).offset),
             .slots_offset = static_cast<std::uint32_t>(problem.spec(kSlots).offset),
             .cache_offset = static_cast<std::uint32_t>(problem.spec(kCache).offset)});
  };

  ts::Variant variant;
  variant.name = "rows";
  variant.idea = "one work-group per row";
  variant.dtypes = {ts::DType::kF32};
  variant.passes = {std::move(pass)};
  variant.space = [](const ts::Problem&, const ts::DeviceProfile&) {
    return std::vector<ts::Config>{{{"WG_X", 64}}, {{"WG_X", 16}}};
  };
  variant.rejects = [](const ts::Problem& problem, const ts::Config&,
                       const ts::DeviceProfile&) -> ts::Refusal {
    for (const std::size_t slot : {kRows, kSlots, kCache}) {
      if (problem.spec(slot).last_element() > std::int64_t{0x7FFFFFFF})
        return "takes operands of more elements than its kernels count";
    }
    return std::nullopt;
  };
  return variant;
}

inline ts::Operation operation(ts::Variant variant) {
  ts::Operation operation;
  operation.name = "append_rows";
  operation.summary = "Writes rows into a cache";
  operation.formula = "cache[slots[n], :] = rows[n, :]";
  operation.operands = {{.name = "rows",
                         .role = ts::Role::kInput,
                         .shape = "[n, features]",
                         .dtypes = {ts::DType::kF32},
                         .doc = "what is written"},
                        {.name = "slots",
                         .role = ts::Role::kInput,
                         .shape = "[n]",
                         .dtypes = {ts::DType::kI32},
                         .doc = "rows of the cache, no two equal"},
                        {.name = "cache",
                         .role = ts::Role::kInOut,
                         .shape = "[size, features]",
                         .dtypes = {ts::DType::kF32},
                         .doc = "its other rows keep their bits"}};
  operation.errors = {
      {.kind = "slot_outside_cache", .operand = "slots", .sentence = "names no row of the cache"}};
  operation.validate = validate;
  operation.reference = reference;
  operation.raises = raises;
  operation.writes = writes;
  operation.variants = {std::move(variant)};
  operation.workload.cases = [](ts::DType) {
    return std::vector<ts::Case>{a_case("plain", 5, 9, 33, "normal"),
                                 a_case("planted", 70, 80, 5, "planted")};
  };
  operation.workload.benchmarks = [](ts::DType) {
    return std::vector<ts::Case>{a_case("many", 256, 4096, 128, "normal")};
  };
  operation.workload.fill = fill;
  return operation;
}

}  // namespace append_rows
