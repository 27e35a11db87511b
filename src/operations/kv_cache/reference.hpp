// SPDX-License-Identifier: Apache-2.0
// What rows of codes must be: scales and quotients are floats, and every device has the same bits.
#pragma once

#include <cstddef>
#include <vector>

#include "operations/kv_cache/problem.hpp"

namespace tessera::operations::kv_cache {

// One row of a tensor in host memory: what it holds can be read and written without touching the
// bits of its other rows.
HostTensor row_of(const HostTensor& tensor, const std::vector<std::int64_t>& index);

// The largest magnitude, NaN left out, and the scale that it makes.
double peak_of(const std::vector<double>& row);
double scale_of_peak(double peak, DType codes);
// The numbers that codes stand for.
std::vector<double> scaled(const std::vector<double>& row, double scale, DType codes);
// How far one may be from scaled(): devices may take a subnormal x for 0.
double code_bound(double x, double code);

// The index into scales that broadcast to [pages, heads, page_size], row-major.
std::size_t scale_index(const TensorSpec& scales, std::int64_t page, std::int64_t head,
                        std::int64_t slot);
// Peaks of the rows of a pool, row-major over [pages, heads, page_size], to scales in `shape`.
std::vector<double> scales_of(const Problem& problem, std::span<HostTensor> tensors);

}  // namespace tessera::operations::kv_cache
