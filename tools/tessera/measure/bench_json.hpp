// SPDX-License-Identifier: Apache-2.0
// Benchmark results in Google Benchmark's JSON schema, so that its compare.py reads them, and the
// comparison of two.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tessera/measure/measure.hpp"
#include "tessera/output/json.hpp"

namespace tessera::tool {

struct MeasuredDevice {
  DeviceInfo device;
  conformance::Peaks peaks;
  std::string fingerprint;
};

Json bench_json(const std::vector<MeasuredDevice>& devices, const std::vector<Measured>& rows);

// Seconds by benchmark name. Throws FileError saying what is wrong with the file.
std::map<std::string, double> read_bench_json(const std::filesystem::path& file);

}  // namespace tessera::tool
