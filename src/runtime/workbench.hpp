// SPDX-License-Identifier: Apache-2.0
// Made-up operands of one call on a device, and the comparison of what a kernel made of them with
// the reference. Tuner, conformance table and benchmarks all verify through here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/compare.hpp"
#include "runtime/context_state.hpp"
#include "runtime/plan.hpp"

namespace tessera::runtime {

// What the requested outputs must be, by the operation's workload or its reference.
std::vector<Expectation> expect(const Problem& problem, std::span<HostTensor> tensors,
                                const Arithmetic& arithmetic, double max_flops);

// The length of the band on each side of an operand: shorter, or none, where operand and bands
// would be more than the device binds as one buffer.
std::int64_t guard_elements(const TensorSpec& spec, const DeviceProfile& profile);

// Operands lie between guard bands. Inputs hold the case's data and NaN wherever no element is;
// outputs start as NaN.
class Workbench {
 public:
  // The problem of `shape` with every operand moved behind its guard band.
  Workbench(ContextState& context, const Operation& operation, const Case& shape, double max_flops);

  const Problem& problem() const { return problem_; }
  std::span<const device::BufferPtr> buffers() const { return buffers_; }
  void reset_outputs();  // to NaN, on the device
  // What `plan` has to have left. The reference runs anew where bounds depend on what ran before.
  std::span<const Expectation> expectations(const Plan& plan);
  // Downloads everything: outputs against the expectations, bytes outside the elements and the
  // inputs unchanged.
  Verdict verify(const Plan& plan);
  // Hash of the outputs' bytes as of the last verify().
  const std::string& output_bits() const { return output_bits_; }

 private:
  void upload();

  ContextState& context_;
  double max_flops_;
  Problem problem_;
  std::vector<std::vector<std::byte>> images_;  // by slot: the buffer's bytes before the call
  std::vector<device::BufferPtr> buffers_;
  std::optional<Arithmetic> expected_of_;  // what expectations_ are for
  std::vector<Expectation> expectations_;
  std::string output_bits_;
};

}  // namespace tessera::runtime
