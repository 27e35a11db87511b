// SPDX-License-Identifier: Apache-2.0
// One verified and timed call beside the limits of its device: a row of `tessera bench` and
// `tessera try`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "conformance/conformance.hpp"
#include "tessera/context.hpp"
#include "tessera/output/json.hpp"
#include "tessera/output/report.hpp"

namespace tessera::tool {

// The part of a device's measured peak that a call reaches, against the limit that binds it:
// arithmetic or memory.
struct Limit {
  double percent = 0;  // 0 = no peak was measured, or nothing is counted
  bool arithmetic = true;
  double per_second = 0;  // operations or bytes at 100 percent
};
Limit percent_of_peak(double flops, double bytes, double seconds, const conformance::Peaks& peaks);

struct Measured {
  DeviceInfo device;
  const Operation* operation = nullptr;
  Case shape;
  StorageTypes types = DType::kF32;
  conformance::VerifiedRun run;
  Limit limit;
  std::string tier;  // as text; a tier that answered from memory names where the entry came from

  // Independent of the configuration, so that two runs can be compared:
  // "flash_attention/prefill/f16@opencl:NAME".
  std::string name() const;
  // Sets `limit`. What was measured in turns with the call goes before `peaks`.
  void compare_with(const conformance::Peaks& peaks);
  bool unsteady() const { return is_unsteady(run.spread, run.settled); }
};

// The best that a device was seen to reach. Other work on the machine slows the probes like
// everything else, so they are run again between the calls that stand beside them.
class PeakMeter {
 public:
  explicit PeakMeter(Context context) : context_(std::move(context)) {}
  void measure();
  const conformance::Peaks& peaks() const { return peaks_; }

 private:
  Context context_;
  conformance::Peaks peaks_;
};

// Never throws for a call that fails: its failure is in the result.
Measured measure(const Executor& executor, const DeviceInfo& device, const Operation& operation,
                 const Case& shape, const StorageTypes& types, double min_time, int calls = 1);

std::string rate_text(const Measured& measured);  // "123 GFLOP/s" or "12.3 GB/s"
// Of the rate: "81.5 % of 151" in the rate's unit, with "read" where it is that bandwidth; or "–".
std::string percent_text(const Measured& measured);
// What "!" means, where a row has it; else nothing.
std::string unsteady_note(const std::vector<Measured>& rows);
std::string error_text(const Measured& measured);  // worst error over its bound
std::string peaks_text(const conformance::Peaks& peaks);

}  // namespace tessera::tool
