// SPDX-License-Identifier: Apache-2.0
#include "tessera/measure/bench_json.hpp"

#include <unistd.h>

#include <array>
#include <cmath>
#include <thread>

#include "tessera/files/file_io.hpp"
#include "tessera/files/tensor_files.hpp"
#include "tessera/output/report.hpp"
#include "tessera/version.hpp"

namespace tessera::tool {
namespace {

constexpr std::uint64_t kMaxBenchBytes = 64U << 20U;

Json context_json(const std::vector<MeasuredDevice>& devices) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  Json list = Json::array();
  for (const MeasuredDevice& measured : devices) {
    Json json = profile_json(measured.device);
    json["fingerprint"] = measured.fingerprint;
    json["peak_fma_flops"] = measured.peaks.fma_flops;
    json["peak_copy_bytes_per_second"] = measured.peaks.copy_bytes_per_second;
    if (measured.peaks.bf16_dot_flops > 0)
      json["peak_bf16_dot_flops"] = measured.peaks.bf16_dot_flops;
    list.push_back(json);
  }
#ifdef NDEBUG
  const char* const build = "release";
#else
  const char* const build = "debug";
#endif
  return {{"date", utc_now()},
          {"host_name", host.data()},
          {"executable", "tessera bench"},
          {"num_cpus", std::thread::hardware_concurrency()},
          {"library_build_type", build},
          {"library_version", kVersion},
          {"devices", list}};
}

Json row_json(const Measured& row, std::size_t index) {
  const conformance::VerifiedRun& run = row.run;
  Json json{{"name", row.name()},
            {"family_index", index},
            {"per_family_instance_index", 0},
            {"run_name", row.name()},
            {"run_type", "iteration"},
            {"repetitions", 1},
            {"repetition_index", 0},
            {"threads", 1},
            {"iterations", run.rounds},
            {"real_time", run.median_seconds * 1e9},
            {"cpu_time", run.median_seconds * 1e9},  // the device's clock is the only one
            {"time_unit", "ns"}};
  if (!run.failure.empty()) {
    json["error_occurred"] = true;
    json["error_message"] = run.failure;
  } else {
    if (run.flops > 0) json["FLOPS"] = run.flops / run.median_seconds;
    if (run.bytes > 0) json["bytes_per_second"] = run.bytes / run.median_seconds;
    if (run.arithmetic_flops > 0) json["arithmetic_flops"] = run.arithmetic_flops;
    if (run.read_bytes_per_second > 0) json["read_bytes_per_second"] = run.read_bytes_per_second;
    json["percent_of_peak"] = row.limit.percent;
    json["peak_per_second"] = row.limit.per_second;
    json["bound_by"] = row.limit.arithmetic ? "arithmetic" : "memory";
    json["spread"] = run.spread;
    json["unsteady"] = row.unsteady();
    if (run.clock_mhz > 0) json["clock_mhz"] = run.clock_mhz;
    json["error_over_bound"] = run.worst;
  }
  json["device"] = row.device.index;
  json["operation"] = row.operation->name;
  json["case"] = row.shape.name;
  json["dtype"] = row.types.name();
  json["variant"] = run.execution.choice.variant;
  json["config"] = run.execution.choice.config.to_string();
  json["tier"] = to_string(run.execution.choice.tier);
  json["origin"] = to_string(run.execution.choice.origin);
  json["key"] = run.execution.key;
  json["precision"] = to_string(run.execution.precision);
  return json;
}

double unit_seconds(const std::string& unit) {
  if (unit == "ns") return 1e-9;
  if (unit == "us") return 1e-6;
  if (unit == "ms") return 1e-3;
  return unit == "s" ? 1 : 0;
}

}  // namespace

Json bench_json(const std::vector<MeasuredDevice>& devices, const std::vector<Measured>& rows) {
  Json benchmarks = Json::array();
  for (const Measured& row : rows) benchmarks.push_back(row_json(row, benchmarks.size()));
  return {{"context", context_json(devices)}, {"benchmarks", benchmarks}};
}

std::map<std::string, double> read_bench_json(const std::filesystem::path& file) {
  const auto fail = [&](const std::string& what) {
    throw FileError(quote(file.string()) + " is no benchmark result: " + what);
  };
  const std::string text = read_text(file, kMaxBenchBytes);
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) fail("not valid JSON");
  if (!json.is_object() || !json.contains("benchmarks") || !json["benchmarks"].is_array()) {
    fail("no list of benchmarks");
  }
  std::map<std::string, double> times;
  for (const Json& entry : json["benchmarks"]) {
    const auto has = [&](const char* key, bool (Json::*is)() const noexcept) {
      return entry.is_object() && entry.contains(key) && (entry[key].*is)();
    };
    if (!has("name", &Json::is_string) || !has("real_time", &Json::is_number) ||
        !has("time_unit", &Json::is_string)) {
      fail("an entry without name, real_time and time_unit");
    }
    const double unit = unit_seconds(entry["time_unit"].get<std::string>());
    const double seconds = entry["real_time"].get<double>() * unit;
    const bool failed =
        has("error_occurred", &Json::is_boolean) && entry["error_occurred"].get<bool>();
    if (unit == 0) fail("an unknown time_unit");
    if (!failed && seconds > 0 && std::isfinite(seconds)) {
      times[entry["name"].get<std::string>()] = seconds;
    }
  }
  return times;
}

}  // namespace tessera::tool
