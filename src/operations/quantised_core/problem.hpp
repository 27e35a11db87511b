// SPDX-License-Identifier: Apache-2.0
// A product with quantised weights after validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "operations/common/ways.hpp"
#include "operations/quantised_core/args.h"
#include "tessera/operations/quantised_matmul.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::quantised {

enum Slot : std::size_t { kInput, kWeight, kScale, kZero, kSizes, kInputScale, kOutput };
// Of the gradient, whose weights are in the same slots.
enum BackwardSlot : std::size_t { kGradOutput = kInput, kGradInput = kSizes + 1 };

// How weights lie: rows of codes, or ggml's blocks of 32 with a scale each.
enum class Layout : std::uint8_t { kPlain, kQ8_0, kQ4_0 };
std::int64_t block_bytes(Layout layout);  // of 32 weights; not of kPlain

Layout layout_of(const Problem& problem);  // the option
OptionInfo layout_option(const std::string& of);
std::string name_of(WeightLayout layout);  // as the option has it

struct QuantisedProblem {
  std::int64_t m = 0, n = 0, k = 0;
  bool is_grouped = false;    // rows have a matrix of weights for each group of them
  std::int64_t matrices = 1;  // of weights
  std::int64_t first = 0;     // group that has one
  std::int64_t group = 0;     // terms that share a scale
  Layout layout = Layout::kPlain;
  DType output = DType::kF32;  // backward that of the gradient of input
};

void validate_quantised_matmul(Problem& problem);
void validate_quantised_backward(Problem& problem);
void reference_quantised_matmul(const Problem& problem, std::span<HostTensor> tensors);
void reference_quantised_backward(const Problem& problem, std::span<HostTensor> tensors);
// Of group_sizes, forward and backward.
std::vector<Raised> raised_by_groups(const Problem& problem, std::span<HostTensor> tensors);
Workload quantised_matmul_workload();
Workload quantised_backward_workload();
std::vector<Case> quantised_matmul_cases(DType dtype);
std::vector<Case> quantised_matmul_benchmarks(DType dtype);
std::vector<Case> quantised_backward_cases(DType dtype);
// Kinds of data: "normal"; "wild", with scales that are 0, NaN and infinite; "tiny", whose blocks
// have subnormal scales.
void fill_quantised_matmul(const Problem& problem, const Case& shape,
                           std::span<HostTensor> tensors);

// What kernels are specialised on and given.
std::uint32_t format_of(const Problem& problem);          // QUANT_BYTES …
abi::QuantArgs weight_arguments(const Problem& problem);  // those of weights alone
abi::QuantArgs input_arguments(const Problem& problem);   // those of input in i8, as weights
abi::QuantArgs arguments_of(const Problem& problem);
std::vector<std::byte> product_arguments(const Problem& problem, const Config& config);  // a pass's
// Chunks of 32 terms that share a scale; 0 where a row has one.
std::uint32_t group_of(const Problem& problem);
// Of kernels that read weights as they lie.
std::vector<Define> weight_constants(const Problem& problem);
// A work-group for each tile of output, so far as a launch may have as many.
Dim3 groups_of_tiles(const Problem& problem, std::uint32_t rows, std::uint32_t columns);
// The distance of rows, where the axes before the last lie one behind the other; else -1.
std::int64_t row_step(const TensorSpec& spec);
Refusal rejects_rows_apart(const Problem& problem, std::span<const std::size_t> slots);
// Of ways that read weights where they lie.
Refusal rejects_quantised(const Problem& problem, const DeviceProfile& profile);
Refusal rejects_blocks_and_codes(const Problem& problem);
Refusal rejects_rows_off_vectors(const Problem& problem);  // of ways that read them by 16 bytes

Way mma_way();
Way hopper_way();
Way stream_way();
Way lanes_way();
Way cooperative_stream_way();
Way cooperative_way();
Way rows_way();
Way cpu_way();
Way weights_way(bool backward);

}  // namespace tessera::operations::quantised
