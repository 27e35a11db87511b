// SPDX-License-Identifier: Apache-2.0
#include "tessera/measure/measure.hpp"

#include <algorithm>

#include "tessera/output/report.hpp"

namespace tessera::tool {

Limit percent_of_peak(double flops, double bytes, double seconds, const conformance::Peaks& peaks) {
  const auto least = [](double amount, double rate) {
    return amount > 0 && rate > 0 ? amount / rate : 0;
  };
  const double arithmetic = least(flops, peaks.fma_flops);
  const double memory = least(bytes, peaks.copy_bytes_per_second);
  Limit limit;
  limit.arithmetic = memory > 0 || arithmetic > 0 ? arithmetic >= memory : flops > 0;
  limit.per_second = limit.arithmetic ? peaks.fma_flops : peaks.copy_bytes_per_second;
  if (seconds > 0) limit.percent = 100 * std::max(arithmetic, memory) / seconds;
  return limit;
}

std::string Measured::name() const {
  return operation->name + '/' + shape.name + '/' + types.name() + '@' +
         std::string(to_string(device.profile.backend)) + ':' + device.profile.name;
}

Measured measure(const Executor& executor, const DeviceInfo& device, const Operation& operation,
                 const Case& shape, const StorageTypes& types, double min_time, int calls) {
  Measured measured{device, &operation, shape, types, {}, {}, {}};
  try {
    measured.run = conformance::verify_and_time(executor, operation, shape, true, min_time, calls);
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    measured.run.failure = error.what();
  }
  measured.tier = tier_text(measured.run.execution.choice);
  return measured;
}

void Measured::compare_with(const conformance::Peaks& peaks) {
  conformance::Peaks own = peaks;
  if (run.arithmetic_flops > 0) own.fma_flops = run.arithmetic_flops;
  if (run.read_bytes_per_second > 0) own.copy_bytes_per_second = run.read_bytes_per_second;
  limit = percent_of_peak(run.flops, run.bytes, run.median_seconds, own);
}

std::string rate_text(const Measured& measured) {
  const double seconds = measured.run.median_seconds;
  if (!(seconds > 0)) return "–";
  if (measured.limit.arithmetic)
    return significant(measured.run.flops / seconds * 1e-9) + " GFLOP/s";
  return significant(measured.run.bytes / seconds * 1e-9) + " GB/s";
}

std::string percent_text(const Measured& measured) {
  if (!(measured.limit.percent > 0)) return "–";
  const bool read = measured.run.read_bytes_per_second > 0 && !measured.limit.arithmetic;
  return fixed(measured.limit.percent, 1) + " % of " + (read ? "read " : "") +
         significant(measured.limit.per_second * 1e-9);
}

std::string unsteady_note(const std::vector<Measured>& rows) {
  const bool any = std::ranges::any_of(
      rows, [](const Measured& row) { return row.run.failure.empty() && row.unsteady(); });
  return any ? kUnsteadyNote : "";
}

std::string error_text(const Measured& measured) { return fixed(measured.run.worst, 3); }

void PeakMeter::measure() {
  const conformance::Peaks now = conformance::measure_peaks(context_);
  peaks_.fma_flops = std::max(peaks_.fma_flops, now.fma_flops);
  peaks_.copy_bytes_per_second = std::max(peaks_.copy_bytes_per_second, now.copy_bytes_per_second);
  peaks_.bf16_dot_flops = std::max(peaks_.bf16_dot_flops, now.bf16_dot_flops);
}

std::string peaks_text(const conformance::Peaks& peaks) {
  const auto rate = [](double value, const char* unit) {
    return value > 0 ? significant(value * 1e-9) + unit : std::string("not measurable");
  };
  return "measured peak: f32 FMA " + rate(peaks.fma_flops, " GFLOP/s") + ", copy " +
         rate(peaks.copy_bytes_per_second, " GB/s") +
         (peaks.bf16_dot_flops > 0 ? ", bf16 dot " + rate(peaks.bf16_dot_flops, " GFLOP/s") : "");
}

}  // namespace tessera::tool
