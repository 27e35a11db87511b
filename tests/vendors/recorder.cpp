// SPDX-License-Identifier: Apache-2.0
#include "vendors/recorder.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <utility>

#include "base/hash.hpp"
#include "tessera/error.hpp"
#if TESSERA_HAVE_VULKAN
#include "vendors/pipelines.hpp"
#endif

namespace tessera::vendors {
namespace {

struct NoProgram final : device::Program {};

void print(const nlohmann::ordered_json& line) {
  std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

// Of all threads: drivers compile on several.
double cpu_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

Recorder::Recorder(DeviceProfile profile, device::DevicePtr real, std::filesystem::path directory)
    : profile_(std::move(profile)), real_(std::move(real)), directory_(std::move(directory)) {}

device::BufferPtr Recorder::create_buffer(std::uint64_t /*bytes*/) {
  throw Unsupported("nothing runs here, so there are no buffers");
}

std::unique_ptr<device::Stream> Recorder::create_stream() {
  throw Unsupported("nothing runs here, so there are no streams");
}

void Recorder::set_call(std::string call, std::string family, int level) {
  call_ = std::move(call);
  family_ = std::move(family);
  level_ = level;
}

void Recorder::fail(const std::string& variant, const std::string& error) {
  ++failures_;
  print({{"case", call_}, {"variant", variant}, {"error", error}});
}

device::ProgramPtr Recorder::build(const device::ProgramRequest& request,
                                   device::BlobStore& store) {
  nlohmann::ordered_json defines = nlohmann::ordered_json::object();
  for (const Define& define : request.defines) {
    const bool other_dim = define.name == "HEAD_DIM" && !dims_.empty();
    if (other_dim && !dims_.contains(define.value)) return std::make_shared<NoProgram>();
    defines[define.name] = define.value;
  }
  ++programs_;
  device::ProgramPtr program = std::make_shared<NoProgram>();
  if (!only_.empty() && !only_.contains(programs_)) return program;
  nlohmann::ordered_json line{
      {"name", request.name}, {"level", level_}, {"case", call_}, {"defines", std::move(defines)}};
  line["family"] = family_;
  line["local_bytes"] = local_bytes_of(request.name);
  line["number"] = programs_;
  line["kernel"] = request.entry + hash128(request.source) + hash128(std::as_bytes(request.spirv));
  if (real_) {
    build_for_real(request, store, line);
  } else if (!directory_.empty()) {
    write_source(request, line);
  }
  print(line);
  return program;
}

// A variant's programs are those of its name, or begin with it and a dot.
std::uint64_t Recorder::local_bytes_of(const std::string& program) const {
  const std::size_t end = program.find('.', program.find('.') + 1);
  const auto counted = local_bytes_.find(program.substr(0, end));
  return counted == local_bytes_.end() ? 0 : counted->second;
}

void Recorder::build_for_real(const device::ProgramRequest& request, device::BlobStore& store,
                              nlohmann::ordered_json& line) {
  const double start = cpu_seconds();
  try {
    real_->build(request, store);
    line["seconds"] = cpu_seconds() - start;
#if TESSERA_HAVE_VULKAN
    line.update(take_statistics());
#endif
  } catch (const Error& error) {
    ++failures_;
    line["error"] = error.what();
  }
}

// A file begins with the program's macros, so that any compiler takes it.
void Recorder::write_source(const device::ProgramRequest& request, nlohmann::ordered_json& line) {
  char name[16];
  std::snprintf(name, sizeof(name), "%04d.cl", programs_);
  std::ofstream file(directory_ / name);
  for (const auto& [macro, value] : line.at("defines").items())
    file << "#define " << macro << ' ' << value << '\n';
  file << request.source;
  line["file"] = name;
  line["entry"] = request.entry;
  line["ptx_target"] = request.ptx_target;
}

}  // namespace tessera::vendors
