// SPDX-License-Identifier: Apache-2.0
// One verified and timed call beside the limits of its device: a row of `tessera bench` and
// `tessera try`.
#pragma once

#include <string>
#include <utility>

#include "conformance/conformance.hpp"
#include "json.hpp"
#include "tessera/context.hpp"

namespace tessera::tool {

// The part of a device's measured peak that a call reaches, against the limit that binds it:
// arithmetic or memory.
struct Limit {
  double percent = 0;  // 0 = no peak was measured, or nothing is counted
  bool arithmetic = true;
};
Limit percent_of_peak(double flops, double bytes, double seconds, const conformance::Peaks& peaks);

struct Measured {
  DeviceInfo device;
  const Operation* operation = nullptr;
  Case shape;
  DType dtype = DType::kF32;
  conformance::VerifiedRun run;
  Limit limit;
  std::string tier;  // as text; a tier that answered from memory names where the entry came from

  // Independent of the configuration, so that two runs can be compared:
  // "flash_attention/prefill/f16@opencl:NAME".
  std::string name() const;
  void compare_with(const conformance::Peaks& peaks);  // sets `limit`
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
                 const Case& shape, DType dtype, double min_time);

std::string rate_text(const Measured& measured);     // "123 GFLOP/s" or "12.3 GB/s"
std::string percent_text(const Measured& measured);  // "81.5 %", "–"
std::string error_text(const Measured& measured);    // worst error over its bound
std::string peaks_text(const conformance::Peaks& peaks);

}  // namespace tessera::tool
