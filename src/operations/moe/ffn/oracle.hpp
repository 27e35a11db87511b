// SPDX-License-Identifier: Apache-2.0
// The definition of moe_ffn and its gradients in double precision, choice by choice, and how far
// from it float arithmetic may end that stores what is between two operations.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "operations/moe/ffn.hpp"
#include "operations/moe/oracle.hpp"

namespace tessera::operations::moe {

class FfnOracle {
 public:
  FfnOracle(const Problem& problem, std::span<const HostTensor> tensors);

  const Routing& routing() const { return routing_; }         // forward
  std::vector<Bounded> output(std::int64_t token) const;      // of a token
  std::vector<Bounded> grad_input(std::int64_t token) const;  // the same
  std::vector<Bounded> grad_weights(std::int64_t token) const;
  // In the shapes of the matrices.
  std::vector<Bounded> grad_gate_up() const;
  std::vector<Bounded> grad_down() const;

 private:
  using Row = std::vector<Bounded>;
  // What an expert makes of a token; and backward, from the gradient of its output.
  struct Inside {
    Row gate_up, gated;
  };
  struct Gradient {
    Row output, gate_up;
  };
  bool is_kept(std::int64_t choice) const;  // it has an expert, and a row of it
  Bounded activation(const Bounded& x) const;
  Bounded slope(const Bounded& x) const;
  Inside inside(std::int64_t choice) const;
  Row outputs(std::int64_t choice, const Inside& from) const;
  Gradient gradient(std::int64_t choice, const Inside& from) const;
  Row input_row(std::int64_t choice) const;
  Bounded stored(double value, double bound) const;
  // Of `count` columns; matrices are [in, out] of their expert, or turned.
  Row product(const Row& row, std::int64_t choice, bool down, bool turned) const;

  const Problem& problem_;
  const FfnProblem& call_;
  std::vector<double> input_{}, gate_up_{}, down_{}, gradient_{};
  Routing routing_{};
};

}  // namespace tessera::operations::moe
