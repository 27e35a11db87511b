// SPDX-License-Identifier: Apache-2.0
// Kernels that measure what a device can do.
#pragma once

#include <string>
#include <vector>

#include "runtime/context_state.hpp"
#include "tessera/context.hpp"

namespace tessera::conformance {

// One probe kernel, as this device runs it best.
struct Probe {
  device::ProgramPtr program;
  Dim3 groups, group;
};

class Prober {
 public:
  explicit Prober(const Context& context);

  // Kernels of CPUs through OpenCL: work-group size 1, explicit vectors.
  bool cpu_style() const { return cpu_style_; }
  std::uint32_t vector_width() const;

  Probe build(const std::string& file, const std::string& entry, std::uint32_t bindings,
              std::uint32_t argument_bytes) const;
  double seconds(const Probe& probe, const std::vector<device::BufferPtr>& buffers,
                 const std::vector<std::byte>& args) const;  // of one launch

 private:
  runtime::ContextState& state_;
  const DeviceProfile& profile_;
  bool cpu_style_;
  Dim3 group_, groups_;
};

// Are limits measured in turns with the calls, so that both meet the same neighbours on the
// machine? On CPUs through OpenCL, where a machine is seldom alone.
bool measured_in_turns(const Context& context);

enum class Arithmetic : std::uint8_t { kFma, kBf16Dot };

// A loop of one arithmetic instruction, long enough to hide what starting it costs.
class ArithmeticProbe {
 public:
  ArithmeticProbe(const Context& context, Arithmetic arithmetic, double least_seconds);

  double measure();       // of one launch, in seconds
  double best() const;    // operations a second, of the shortest launch
  double median() const;  // operations a second

 private:
  Prober prober_;
  Probe probe_;
  std::vector<device::BufferPtr> sink_;
  double flops_per_iteration_ = 0;
  std::uint32_t iterations_ = 64;
  std::vector<double> seconds_;
};

// The read bandwidth beside a call that reads `bytes`. Each read is as long as the call, and of
// memory that was not read for long; the call, too, finds its operands in no cache after it.
class ReadProbe {
 public:
  ReadProbe(const Context& context, double bytes);
  void measure();                   // before each call
  double bytes_per_second() const;  // median

 private:
  Prober prober_;
  Probe probe_;
  std::vector<device::BufferPtr> buffers_;
  std::uint32_t blocks_ = 0, windows_ = 0, next_ = 0;
  std::vector<double> seconds_;
};

}  // namespace tessera::conformance
