// SPDX-License-Identifier: Apache-2.0
// A call of quantise or dequantise after validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/common/ways.hpp"
#include "operations/quantise/args.h"
#include "operations/quantised_core/problem.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::quantised {

// Floats, their codes, and a scale and perhaps a zero point for each block. Both operations have
// all four, in another order.
struct CodesSlots {
  std::size_t floats = 0, codes = 1, scale = 2, zero = 3;
};
CodesSlots quantise_slots();
CodesSlots dequantise_slots();

struct CodesProblem {
  CodesSlots slots{};
  Layout layout = Layout::kPlain;  // else blocks of 32 that hold their scales: codes are bytes
  DType codes = DType::kI8;
  bool is_dynamic = false;  // floats times scale are codes
  // Matrices, and blocks of them that share a scale; those at the ends may be smaller.
  std::int64_t batches = 1, rows = 1, columns = 0;
  std::int64_t group_rows = 1, group = 1;

  std::int64_t talls() const;   // blocks along the rows
  std::int64_t groups() const;  // blocks along a row
  std::int64_t blocks() const { return batches * talls() * groups(); }
  std::size_t block_of(std::int64_t element) const;
};

bool is_unsigned_code(DType dtype);
double largest_code(DType dtype);

void validate_quantise(Problem& problem);
void validate_dequantise(Problem& problem);

// What quantise must give, in the float arithmetic of its definition.
struct Codes {
  std::vector<double> scales{}, zeros{};
  std::vector<double> numbers{}, bounds{};  // what codes stand for
};
Codes codes_of(const CodesProblem& call, const std::vector<double>& floats);

// The same of GGUF's blocks: their bytes, and their scales once more.
struct BlockCodes {
  std::vector<double> bytes{}, scales{};
};
BlockCodes blocks_of(const CodesProblem& call, const std::vector<double>& floats);
std::vector<double> floats_of_blocks(const CodesProblem& call, const std::vector<double>& bytes);

// What kernels are given, and what all of them refuse.
abi::CodesArgs codes_arguments(const Problem& problem);
Refusal rejects_matrices(const Problem& problem, const DeviceProfile& profile);
// Of a configuration with PER_CALL: what its programs are built for. They are worth it for calls
// that are large.
std::vector<Define> codes_constants(const Problem& problem, const Config& config);
bool is_large(const Problem& problem);

void reference_quantise(const Problem& problem, std::span<HostTensor> tensors);
void reference_dequantise(const Problem& problem, std::span<HostTensor> tensors);
Workload quantise_workload();
Workload dequantise_workload();

Way quantise_way();
Way quantise_cpu_way();
Way dequantise_way();
Way dequantise_cpu_way();
Way gguf_quantise_way();
Way gguf_dequantise_way();

}  // namespace tessera::operations::quantised
