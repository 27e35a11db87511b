// SPDX-License-Identifier: Apache-2.0
// What the functions on masks refuse, in one voice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/mask.hpp"

namespace tessera {

// Throws InvalidArgument("mask: " + sentence).
[[noreturn]] void refuse_mask(const std::string& sentence);

// An index outside [0, size).
void check_index(const char* name, std::int64_t index, std::int64_t size);

// Values that are neither one for all batches nor one per batch.
void check_per_batch(const char* name, std::size_t count, std::int64_t batch);

// Anything but rows * len values.
void check_count(const char* name, std::size_t count, std::int64_t rows, std::int64_t len);

// Sizes and values that contradict each other.
void check_dense(const DenseMask& mask);

// The length of a row where `count` values make the rows of a batch.
std::int64_t row_length(const char* name, std::size_t count, std::int64_t batch);

}  // namespace tessera
