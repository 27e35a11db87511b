// SPDX-License-Identifier: Apache-2.0
// A call of a grouped product or of its gradients after validation. grouped_matmul,
// transposed_grouped_matmul and their gradients share all of their inside; GroupedSlots says which
// operand is where.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "abi/shared.h"
#include "operations/common/eight_bits.hpp"
#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::matmul {

struct GroupedSlots {
  std::size_t lhs = 0, rhs = 1, sizes = 2;
  std::size_t existing = kNoOperand, output = kNoOperand;      // forward
  std::size_t scale_lhs = kNoOperand, scale_rhs = kNoOperand;  // forward: of factors of 8 bits
  // Backward. A gradient has the shape and dtype of what it is the gradient of.
  std::size_t grad_output = kNoOperand, grad_lhs = kNoOperand, grad_rhs = kNoOperand;
  std::size_t grad_existing = kNoOperand;
  // The groups have columns of lhs and rows of rhs, and a result each.
  bool transposed = false;
  bool backward() const { return grad_output != kNoOperand; }
};

GroupedSlots grouped_slots();
GroupedSlots grouped_backward_slots();
GroupedSlots transposed_grouped_slots();
GroupedSlots transposed_grouped_backward_slots();

struct GroupedProblem {
  GroupedSlots slots{};
  std::int64_t m = 0, k = 0, n = 0;  // m: the axis that groups share out
  std::int64_t groups = 0;           // that have a size
  std::int64_t first = 0, held = 0;  // those that have a matrix
  bool transpose_rhs = false;
  DType output = DType::kF32;
  Scaling scale_lhs{}, scale_rhs{};
  // Of gated.hpp: MATMUL_…, the activation of these n columns, which multiplies those n further on.
  std::optional<abi::u32> gate{};
};

void validate_grouped(Problem& problem, const GroupedSlots& slots);

// The record but for its operands.
Operation grouped_record(const std::string& name, const GroupedSlots& slots);
Operand grouped_operand(std::string name, Role role, bool optional, std::string shape,
                        std::string doc);
Operand sizes_operand();
// Forward: factors of 8 bits, sums of them as output, and a scale of one.
void add_eight_bits_of_groups(Operation& operation);
Operand grouped_scale_operand(const std::string& of, std::string shape, std::string doc);
std::vector<ErrorKind> sizes_errors();

void reference_grouped(const Problem& problem, std::span<HostTensor> tensors);
std::vector<Raised> grouped_raises(const Problem& problem, std::span<HostTensor> tensors);
Workload grouped_workload(const GroupedSlots& slots);

std::vector<Case> grouped_cases(const GroupedSlots& slots, DType dtype);
std::vector<Case> grouped_edges(const GroupedSlots& slots, DType dtype, const Config& config);
std::vector<Case> grouped_benchmarks(const GroupedSlots& slots, DType dtype);
// Kinds of data: "ragged", groups of all lengths, some of them empty, and NaN in rows of none;
// "equal"; "short", sizes of half of the rows, NaN behind them; "empty"; "single", one row each;
// "negative", "beyond" and "garbage" as errors have them; "hostile", any of these.
// The last are those of other operations with groups, too.
std::vector<double> hostile_sizes(std::size_t groups, std::int64_t rows,
                                  std::mt19937_64& generator);
void fill_grouped(const Problem& problem, const Case& shape, std::span<HostTensor> tensors);

Way grouped_hopper_way(const GroupedSlots& slots);
Way grouped_cooperative_way(const GroupedSlots& slots);
Way grouped_tile_way(const GroupedSlots& slots);
Way grouped_cpu_way(const GroupedSlots& slots);

}  // namespace tessera::operations::matmul
