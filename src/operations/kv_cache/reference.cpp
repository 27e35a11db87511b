// SPDX-License-Identifier: Apache-2.0
#include "operations/kv_cache/reference.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernel/elements.hpp"
#include "operations/common/numerics.hpp"

namespace tessera::operations::kv_cache {
namespace {

void copy_row(const HostTensor& from, HostTensor to) {
  for (std::int64_t i = 0; i < from.spec.shape[0]; ++i) {
    kernel::copy_element(to.spec.dtype, from.data, static_cast<std::size_t>(from.spec.offset + i),
                         to.data, static_cast<std::size_t>(to.spec.offset + i));
  }
}

// Keys into their cache, or values into theirs.
void append(std::span<HostTensor> tensors, const Places& places, std::size_t rows,
            std::size_t cache, std::size_t scale, bool own) {
  const Shape& pool = tensors[cache].spec.shape;
  const DType codes = tensors[cache].spec.dtype;
  std::vector<double> scales;
  if (is_code(codes)) scales = tensors[scale].read();
  for (std::size_t n = 0; n < places.slots.size(); ++n) {
    if (places.slots[n] == kNowhere) continue;
    const std::int64_t page = places.slots[n] / pool[2], slot = places.slots[n] % pool[2];
    for (std::int64_t head = 0; head < pool[1]; ++head) {
      const HostTensor from = row_of(tensors[rows], {std::int64_t(n), head});
      HostTensor to = row_of(tensors[cache], {page, head, slot});
      if (!is_code(codes)) {
        copy_row(from, to);
        continue;
      }
      const std::vector<double> row = from.read();
      double with = 0;
      if (own) {
        with = scale_of_peak(peak_of(row), codes);
        HostTensor place = row_of(tensors[scale], {page, head});
        place.spec.offset += slot * tensors[scale].spec.strides[2];
        place.spec.shape = {1};
        place.write(std::vector<double>{with});
      } else {
        with = scales[scale_index(tensors[scale].spec, page, head, slot)];
      }
      to.write(scaled(row, with, codes));
    }
  }
}

// The gradients of the written rows, and zeros in their places.
void take(std::span<HostTensor> tensors, const Places& places, std::size_t rows,
          std::size_t cache) {
  const Shape& pool = tensors[cache].spec.shape;
  const std::vector<double> zeros(static_cast<std::size_t>(pool[3]), 0.0);
  for (std::size_t n = 0; n < places.slots.size(); ++n) {
    for (std::int64_t head = 0; head < pool[1]; ++head) {
      HostTensor to = row_of(tensors[rows], {std::int64_t(n), head});
      if (places.slots[n] == kNowhere) {
        to.write(zeros);
        continue;
      }
      const std::int64_t page = places.slots[n] / pool[2], slot = places.slots[n] % pool[2];
      HostTensor from = row_of(tensors[cache], {page, head, slot});
      copy_row(from, to);
      from.write(zeros);
    }
  }
}

}  // namespace

HostTensor row_of(const HostTensor& tensor, const std::vector<std::int64_t>& index) {
  HostTensor row{.spec = {.dtype = tensor.spec.dtype,
                          .shape = {tensor.spec.shape.back()},
                          .strides = {tensor.spec.strides.back()},
                          .offset = tensor.spec.offset},
                 .data = tensor.data};
  for (std::size_t axis = 0; axis < index.size(); ++axis)
    row.spec.offset += index[axis] * tensor.spec.strides[axis];
  return row;
}

double peak_of(const std::vector<double>& row) {
  double peak = 0;
  for (const double value : row) peak = std::isnan(value) ? peak : std::max(peak, std::fabs(value));
  return peak;
}

double scale_of_peak(double peak, DType codes) {
  const double scale = static_cast<float>(peak / largest_code(codes));
  return scale >= 0x1p-126 ? scale : 1;
}

std::vector<double> scaled(const std::vector<double>& row, double scale, DType codes) {
  const double most = largest_code(codes);
  std::vector<double> result;
  for (const double value : row) {
    const double code = static_cast<float>(value / scale);
    if (codes == DType::kE4M3FN) {
      result.push_back(from_e4m3fn_bits(to_e4m3fn_bits(code)));
    } else if (codes == DType::kE5M2) {
      result.push_back(from_e5m2_bits(to_e5m2_bits(code)));
    } else {
      result.push_back(std::isnan(code) ? 0 : std::nearbyint(std::clamp(code, -most, most)));
    }
  }
  return result;
}

double code_bound(double x, double code) {
  return x != 0 && std::fabs(x) < 0x1p-126 ? std::fabs(code) : 0;
}

std::size_t scale_index(const TensorSpec& scales, std::int64_t page, std::int64_t head,
                        std::int64_t slot) {
  const Shape& shape = scales.shape;
  const std::int64_t at =
      ((shape[0] == 1 ? 0 : page) * shape[1] + (shape[1] == 1 ? 0 : head)) * shape[2] +
      (shape[2] == 1 ? 0 : slot);
  return static_cast<std::size_t>(at);
}

std::vector<double> scales_of(const Problem& problem, std::span<HostTensor> tensors) {
  const PoolShape& pool = problem.as<CodesProblem>().pool;
  const TensorSpec& scale = problem.spec(kScale);
  std::vector<double> result(static_cast<std::size_t>(scale.elements()), 0);
  const std::vector<double> all = tensors[kFloats].read();
  std::size_t first = 0;
  for (std::int64_t page = 0; page < pool.pages; ++page) {
    for (std::int64_t head = 0; head < pool.heads; ++head) {
      for (std::int64_t slot = 0; slot < pool.page_size; ++slot) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
        double& peak = result[scale_index(scale, page, head, slot)];
        peak = std::max(peak, peak_of({begin, begin + pool.dim}));
        first += static_cast<std::size_t>(pool.dim);
      }
    }
  }
  for (double& peak : result) peak = scale_of_peak(peak, problem.spec(kCodes).dtype);
  return result;
}

void reference_append(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<AppendProblem>();
  const Places places = places_of(problem, tensors);
  append(tensors, places, kKeys, kKeyCache, kKeyScale,
         has_own_scales(problem, kKeyScale, call.keys));
  if (problem.has(kValues))
    append(tensors, places, kValues, kValueCache, kValueScale,
           has_own_scales(problem, kValueScale, call.values));
}

void reference_append_backward(const Problem& problem, std::span<HostTensor> tensors) {
  const Places places = places_of(problem, tensors);
  take(tensors, places, kKeys, kKeyCache);
  if (problem.has(kValues)) take(tensors, places, kValues, kValueCache);
}

void reference_copy_pages(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CopyProblem>();
  const std::size_t source = call.one_pool ? kPool : kSource;
  const Places places = pages_of(problem, tensors);
  const auto page_of = [&](std::size_t slot, std::int64_t page) {
    const TensorSpec& spec = tensors[slot].spec;
    TensorSpec part{.dtype = spec.dtype,
                    .shape = {spec.shape.begin() + 1, spec.shape.end()},
                    .strides = {spec.strides.begin() + 1, spec.strides.end()},
                    .offset = spec.offset + page * spec.strides[0]};
    return HostTensor{.spec = std::move(part), .data = tensors[slot].data};
  };
  // All reads before any write.
  std::vector<std::vector<std::byte>> pages(places.slots.size());
  for (std::size_t page = 0; page < places.slots.size(); ++page) {
    if (places.slots[page] == kNowhere) continue;
    const HostTensor from = page_of(source, places.slots[page]);
    pages[page].resize(8 * static_cast<std::size_t>(from.spec.elements()));
    kernel::for_each_element(from.spec, [&](std::size_t flat, std::size_t element) {
      kernel::copy_element(from.spec.dtype, from.data, element, pages[page].data(), flat);
    });
  }
  for (std::size_t page = 0; page < places.slots.size(); ++page) {
    if (places.slots[page] == kNowhere) continue;
    const HostTensor to = page_of(kPool, static_cast<std::int64_t>(page));
    kernel::for_each_element(to.spec, [&](std::size_t flat, std::size_t element) {
      kernel::copy_element(to.spec.dtype, pages[page].data(), flat, to.data, element);
    });
  }
}

void reference_quantise(const Problem& problem, std::span<HostTensor> tensors) {
  const PoolShape& pool = problem.as<CodesProblem>().pool;
  const DType codes = problem.spec(kCodes).dtype;
  const std::vector<double> scales = scales_of(problem, tensors);
  for (std::int64_t page = 0; page < pool.pages; ++page) {
    for (std::int64_t head = 0; head < pool.heads; ++head) {
      for (std::int64_t slot = 0; slot < pool.page_size; ++slot) {
        const double scale = scales[scale_index(problem.spec(kScale), page, head, slot)];
        const std::vector<double> row = row_of(tensors[kFloats], {page, head, slot}).read();
        row_of(tensors[kCodes], {page, head, slot}).write(scaled(row, scale, codes));
      }
    }
  }
  tensors[kScale].write(scales);
}

void reference_dequantise(const Problem& problem, std::span<HostTensor> tensors) {
  const PoolShape& pool = problem.as<CodesProblem>().pool;
  const std::vector<double> scales = tensors[kFromScale].read();
  for (std::int64_t page = 0; page < pool.pages; ++page) {
    for (std::int64_t head = 0; head < pool.heads; ++head) {
      for (std::int64_t slot = 0; slot < pool.page_size; ++slot) {
        std::vector<double> row = row_of(tensors[kFromCodes], {page, head, slot}).read();
        for (double& value : row)
          value *= scales[scale_index(problem.spec(kFromScale), page, head, slot)];
        row_of(tensors[kToFloats], {page, head, slot}).write(row);
      }
    }
  }
}

}  // namespace tessera::operations::kv_cache
