// SPDX-License-Identifier: Apache-2.0
// Made-up operands of one call on a device, and the comparison of what a kernel made of them with
// the reference. Tuner, conformance table and benchmarks all verify through here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
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

// Operands lie between guard bands. What is read holds the case's data and NaN wherever no element
// is; outputs start as NaN.
class Workbench {
 public:
  // The problem of `shape` with every operand moved behind its guard band.
  Workbench(ContextState& context, const Operation& operation, const Case& shape, double max_flops);

  const Problem& problem() const { return problem_; }
  std::span<const device::BufferPtr> buffers() const { return buffers_; }
  // Makes operands what they were before any call, and runs the plan; does not wait.
  void launch(const Plan& plan);
  // In-out operands as before any call: a run more begins with what the first one did.
  void restore();
  // What `plan` has to have left. The reference runs once for each arithmetic.
  std::span<const Expectation> expectations(const Plan& plan);
  // Downloads everything: what is written against the expectations, all other bytes unchanged, and
  // the errors that were raised against Operation::raises.
  Verdict verify(const Plan& plan);
  double oracle_seconds() const { return oracle_seconds_; }  // in the reference, so far
  // Hash of the outputs' bytes as of the last verify().
  const std::string& output_bits() const { return output_bits_; }
  std::string download_bits();  // the same of the last launch, which is not verified

 private:
  void upload();
  std::vector<HostTensor> tensors_before();
  void download(std::size_t slot);
  std::string hash_outputs() const;  // of what was downloaded
  std::string wrong_bytes(std::size_t slot, const std::vector<std::byte>& after);
  std::string wrong_errors(const Plan& plan);

  ContextState& context_;
  double max_flops_;
  Problem problem_;
  std::vector<std::vector<std::byte>> images_;     // by slot: the buffer's bytes before the call
  std::vector<std::vector<std::byte>> downloads_;  // the same, after the last run
  std::vector<device::BufferPtr> buffers_;
  std::vector<device::BufferPtr> pristine_;  // copies of in-out operands as they were
  std::unique_ptr<ErrorWords> errors_;       // of the last launch; null: the plan raises none
  std::deque<std::pair<Arithmetic, std::vector<Expectation>>> expectations_;
  double oracle_seconds_ = 0;
  std::string output_bits_;
};

}  // namespace tessera::runtime
