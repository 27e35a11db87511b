// SPDX-License-Identifier: Apache-2.0
// A made-up call in host memory: operands as the workbench lays them out, and what the outputs must
// be.
#pragma once

#include <string>
#include <vector>

#include "runtime/compare.hpp"

namespace tessera::testing {

class HostCase {
 public:
  HostCase(const Operation& operation, const Case& shape);

  const std::string& name() const { return name_; }
  const Problem& problem() const { return problem_; }
  std::span<const Expectation> expectations() const { return expectations_; }
  std::span<HostTensor> tensors() { return tensors_; }
  void reset_outputs();  // to NaN
  runtime::Verdict verdict(std::span<const Expectation> expectations) const {
    return runtime::compare(problem_, tensors_, expectations);
  }

 private:
  std::string name_;
  Problem problem_;
  std::vector<std::vector<std::byte>> images_;
  std::vector<HostTensor> tensors_;
  std::vector<Expectation> expectations_;
};

}  // namespace tessera::testing
