// SPDX-License-Identifier: Apache-2.0
// What became of calls that were drawn from seeds, of any family.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "support/draw.hpp"
#include "tessera/context.hpp"
#include "tessera/record.hpp"

namespace tessera::testing {

// A call and a variant to run it on. A seed gives the same on every machine.
struct RandomCall {
  std::string operation;
  DType dtype = DType::kF32;  // of the first operand
  Case shape;  // its name says everything that was drawn, its seed is that of the call
  std::uint64_t kernel = 0;  // which of the variants that accept the call, modulo their number
};

// Rows or columns that are contiguous, or neither; gaps, in which there is NaN; an offset.
void vary_strides(Draw& draw, TensorSpec& spec);
std::string describe_operands(const Case& shape);  // and options, each behind a blank

struct RandomResult {
  std::uint64_t seed = 0;
  std::string name{};     // full name and case
  std::string failure{};  // empty = passed
  std::string skipped{};  // why it did not run; empty = it ran
  bool mistrusted = false;
  double worst = 0;  // error over bound
};

struct RandomSummary {
  std::size_t passed = 0, failed = 0, mistrusted = 0;
  std::map<std::string, std::size_t> skipped;   // by reason
  std::map<std::string, std::size_t> variants;  // that ran, how often
  double worst = 0;
  std::string worst_name;
  std::size_t programs = 0, programs_of_the_table = 0;  // where they are counted
};

// Runs the calls of seeds first, first + 1, ... and reports each.
RandomSummary run_seeds(std::uint64_t first, std::uint64_t count,
                        const std::function<RandomResult(std::uint64_t)>& run,
                        const std::function<void(const RandomResult&)>& each);

// Compares a call with the reference, on the variant that was drawn of those that take it.
RandomResult run_call(const Context& context, const RandomCall& call);
// The same on this kernel, which takes it.
void check_call(const Context& context, const Operation& operation, const Case& shape,
                const Variant& variant, const Config& config, RandomResult& result);

}  // namespace tessera::testing
