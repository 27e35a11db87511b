// SPDX-License-Identifier: Apache-2.0
// What causal_conv1d and selective_scan have in common: rows of channels in batch entries or packed
// sequences, and the pass that brings the boundaries of these into order.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "operations/state_space_core/args.h"
#include "tessera/record.hpp"

namespace tessera::operations::state_space {

struct Layout {
  std::int64_t batch = 0, tokens = 0, dim = 0;
  std::int64_t sequences = 0;  // batch entries, or those that are packed
  bool packed = false;
};

struct Sequence {
  std::int64_t batch = 0, begin = 0, end = 0;  // tokens of the batch entry
  std::int64_t length() const { return end - begin; }
};

// Of an operand [batch, seq, dim], and cu_seqlens. Throws InvalidArgument.
Layout read_layout(const Problem& problem, std::size_t rows, std::size_t cu_seqlens);
// Checks the shape of an operand that a call may have, and its dtype: `dtype`, or f32 where `wide`.
void check_operand(const Problem& problem, std::size_t slot, const Shape& shape, DType dtype,
                   bool wide);
// A wanted gradient has the shape and dtype of its operand, which the call must have.
void infer_gradient(Problem& problem, std::size_t gradient, std::size_t of);
std::string layout_key(const Problem& problem, const Layout& layout);

// Boundaries are cut to [0, tokens] and to not decrease.
std::vector<Sequence> sequences_of(const Layout& layout, std::span<HostTensor> tensors,
                                   std::size_t cu_seqlens);
// Of the loop that finds a token's sequence.
std::int64_t search_rounds(const Layout& layout);
std::vector<ErrorKind> boundary_errors();
std::vector<Raised> raises_of(const Layout& layout, std::span<HostTensor> tensors,
                              std::size_t cu_seqlens);
Operand cu_seqlens_operand();

// Made-up data. Boundaries of the kinds "gap", sequences begin after the first row and end before
// the last; "out_of_range", beyond the tokens; "decreasing"; else all tokens are of a sequence.
void fill_boundaries(const Layout& layout, const Case& shape, HostTensor& cu_seqlens,
                     std::mt19937_64& generator);
// NaN in rows of no sequence.
void hide_rows(const Layout& layout, const std::vector<Sequence>& sequences, HostTensor& rows);
// NaN or infinity in one element behind the middle.
void spoil(const Layout& layout, HostTensor& rows, std::size_t slot);

// What passes are launched with.
abi::SpaceRows rows_of(const Problem& problem, std::size_t slot);
abi::u32 type_of(const Problem& problem, std::size_t slot, abi::u32 shift);
// Whether the operands' last axes are contiguous, and all else of them multiples of `vector`.
bool by_vectors(const Problem& problem, std::span<const std::size_t> slots, std::int64_t vector);
inline bool by_fours(const Problem& problem, std::span<const std::size_t> slots) {
  return by_vectors(problem, slots, 4);
}
Dim3 groups_of(std::int64_t groups);
// Vulkan's modules know whether the device stores elements of 16 bits: types are values there, and
// one module takes them all. OpenCL's kernels know whether the device takes PTX.
std::vector<Define> typed_axes(const Problem& problem, const DeviceProfile& profile);
// Launched for packed sequences: leaves the boundaries at the beginning of scratch.
Pass boundaries_pass(const Layout& (*layout_of)(const Problem&), std::size_t cu_seqlens);
// Vectors of four floats that they take there.
std::int64_t boundary_vectors(const Layout& layout);

}  // namespace tessera::operations::state_space
