// SPDX-License-Identifier: Apache-2.0
// Calls of operations that carry a state along the tokens of sequences, and the laws that their
// references keep. No device is needed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/reference.hpp"

namespace tessera::testing {

// A call of one batch entry, with the operands that have values.
struct SequenceCall {
  std::string operation;
  std::int64_t tokens;
  std::map<std::string, Shape> rows;   // of a token; of outputs, too
  std::map<std::string, Shape> whole;  // of operands without tokens
  Shape state;                         // of a sequence
  double error = 0;                    // where laws hold up to the rounding of double
  Values values{};
  std::vector<double> boundaries{};
  Options options{};

  std::int64_t sequences() const;
  std::size_t width_of(const std::string& name) const;  // elements of a token
  std::size_t state_elements() const;                   // of a sequence
  TensorSpec rows_spec(const std::string& name) const;
  TensorSpec states_spec() const;
  Specs specs() const;
  Values inputs() const;
  Values run() const;
  Values gradients(const Values& weights) const;  // of the sum of results times weights
};

// Tokens [begin, end) of a call, from a state.
SequenceCall part_of(const SequenceCall& call, std::int64_t begin, std::int64_t end,
                     const std::vector<double>& state);

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double error);

// Two calls through the state are one; in reverse, too, where the operation has that.
void expect_to_split(SequenceCall whole, bool reverses);
// A packed call is one for each sequence. The first boundary lies behind the first token, the last
// before the last, and the first sequence is empty.
void expect_to_unpack(const SequenceCall& packed);
// Reverse is reversal.
void expect_to_reverse(SequenceCall call);
// Boundaries are cut to the tokens and to not decrease, as `mended` has them.
void expect_to_mend(SequenceCall call, const std::vector<double>& boundaries,
                    const std::vector<double>& mended);
// Gradients are those of finite differences.
void expect_slopes(SequenceCall call);

}  // namespace tessera::testing
