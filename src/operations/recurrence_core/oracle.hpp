// SPDX-License-Identifier: Apache-2.0
// The definition of a recurrence and of its gradients in double precision, step by step, with what
// float arithmetic may be off by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

struct Bounded {
  std::vector<double> values, bounds;
  // Not empty: elements without a bound, because rounding may turn what an infinity is multiplied
  // by to the other side of 0.
  std::vector<bool> unbounded{};
};

// One sequence in one head; everything is computed for each on its own.
struct Unit {
  std::int64_t sequence = 0, batch = 0, head = 0;
  std::int64_t begin = 0, end = 0;  // tokens of the batch entry
  std::int64_t length() const { return end - begin; }
};

// Sequences as cu_seqlens cuts them: boundaries are cut to [0, tokens] and to not decrease.
std::vector<std::int64_t> boundaries_of(const RecurrenceProblem& call,
                                        std::span<HostTensor> tensors);

class RecurrenceOracle {
 public:
  // `rounds`: bounds are those of products whose factors are rounded to the storage type.
  RecurrenceOracle(const Problem& problem, std::span<HostTensor> tensors, bool rounds = false);

  const std::vector<Unit>& units() const { return units_; }

  struct Forward {
    Bounded output;  // [length, columns], in the order of tokens
    Bounded state;   // [key_dim, columns]
  };
  // Of the columns of the value dim from `first` on.
  Forward forward(const Unit& unit, std::int64_t first, std::int64_t columns) const;

  // Rows in the order of tokens. gate: the sum of gk's row, the gradient of a number for a token.
  struct Backward {
    Bounded query, key, value, gk, gv, gate, beta, state;
    double gamma = 0, gamma_bound = 0;
  };
  Backward backward(const Unit& unit) const;

 private:
  struct States;  // values, what sums are made of, and errors
  struct Lost;    // near 0, by rounded factors
  // The log decay of a token: what all dims share with g or gk, and gv.
  struct Decay {
    std::vector<double> keys, key_sizes;  // sums of terms, and of their magnitudes
    const double* values = nullptr;       // gv, from the first column on
  };
  struct DeltaToken;
  DeltaToken delta_token(const Unit& unit, std::int64_t step, std::int64_t first) const;
  Forward forward_delta(const Unit& unit, std::int64_t first, std::int64_t columns) const;
  Backward backward_delta(const Unit& unit) const;
  std::int64_t token(const Unit& unit, std::int64_t step) const;
  const double* row(const std::vector<double>& values, const Unit& unit, std::int64_t token,
                    std::int64_t dim) const;
  Decay decay(const Unit& unit, std::int64_t token, std::int64_t first) const;
  States initial(const Unit& unit, std::int64_t first, std::int64_t columns) const;
  void step(const Unit& unit, std::int64_t token, std::int64_t first, std::int64_t columns,
            States& states) const;

  const RecurrenceProblem& call_;
  // Of factors, if they are rounded: relative, and what may be lost near 0.
  double factor_unit_ = 0, factor_lost_ = 0;
  std::vector<double> query_, key_, value_, g_, gamma_, gk_, gv_, beta_, initial_;
  std::vector<double> grad_output_, grad_final_;
  std::vector<Unit> units_;
};

}  // namespace tessera::operations::recurrence
