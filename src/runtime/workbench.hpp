// SPDX-License-Identifier: Apache-2.0
// Made-up operands of one call on a device, and the comparison of what a kernel made of them with
// the reference. Tuner, conformance table and benchmarks all verify through here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/compare.hpp"
#include "runtime/context_state.hpp"

namespace tessera::runtime {

// What the requested outputs must be, by the operation's workload or its reference.
std::vector<Expectation> expect(const Problem& problem, std::span<HostTensor> tensors,
                                const DeviceProfile& profile, double max_flops);

// Operands lie between guard bands. Inputs hold the case's data and NaN wherever no element is;
// outputs start as NaN.
class Workbench {
 public:
  // The problem of `shape` with every operand moved behind its guard band.
  Workbench(ContextState& context, const Operation& operation, const Case& shape, double max_flops);

  const Problem& problem() const { return problem_; }
  std::span<const device::BufferPtr> buffers() const { return buffers_; }
  void reset_outputs();  // to NaN, on the device
  // Downloads everything: outputs against the expectations, bytes outside the elements and the
  // inputs unchanged.
  Verdict verify();
  std::span<const Expectation> expectations() const { return expectations_; }
  // Hash of the outputs' bytes as of the last verify().
  const std::string& output_bits() const { return output_bits_; }

 private:
  void upload();

  ContextState& context_;
  Problem problem_;
  std::vector<std::vector<std::byte>> images_;  // by slot: the buffer's bytes before the call
  std::vector<device::BufferPtr> buffers_;
  std::vector<Expectation> expectations_;
  std::string output_bits_;
};

}  // namespace tessera::runtime
