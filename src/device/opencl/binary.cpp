// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/binary.hpp"

#include <span>
#include <vector>

#include "base/hash.hpp"
#include "base/system/log.hpp"
#include "device/opencl/errors.hpp"
#include "device/opencl/profile.hpp"
#include "device/opencl/program.hpp"
#include "device/opencl/ptx_promotion.hpp"
#include "tessera/error.hpp"

namespace tessera::device::opencl {
namespace {

using Bytes = std::vector<std::byte>;

// An empty handle for what the driver refuses; then `log_of_failure` gets the compiler's log.
cl::Program from_binary(const ClDevice& device, std::span<const std::byte> binary,
                        const std::string& options, std::string* log_of_failure = nullptr) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t size = binary.size();
  const cl_device_id id = device.id();
  cl_int accepted = CL_SUCCESS;
  cl_int code = CL_SUCCESS;
  cl::Program program;
  code = device.compile("clBuildProgram", program, [&] {
    program = cl::Program(
        clCreateProgramWithBinary(device.context(), 1, &id, &size, &bytes, &accepted, &code),
        false);
    if (code == CL_SUCCESS) code = accepted;
    if (code != CL_SUCCESS) return code;
    return clBuildProgram(program(), 1, &id, options.c_str(), nullptr, nullptr);
  });
  if (code == CL_SUCCESS) return program;
  if (always_means_lost(code)) device.fail(code, "clBuildProgram");
  if (log_of_failure != nullptr && program() != nullptr) *log_of_failure = build_log(program, id);
  log(LogLevel::kInfo, describe("opencl: a kept program binary was refused", code));
  return {};
}

Bytes to_binary(const ClDevice& device, cl::Program& program) {
  std::size_t size = 0;
  const cl_int known = device.compile("clGetProgramInfo(CL_PROGRAM_BINARY_SIZES)", program, [&] {
    return clGetProgramInfo(program(), CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr);
  });
  if (known != CL_SUCCESS || size == 0) return {};
  Bytes binary(size);
  std::byte* bytes = binary.data();
  const cl_int code = device.compile("clGetProgramInfo(CL_PROGRAM_BINARIES)", program, [&] {
    return clGetProgramInfo(program(), CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr);
  });
  return code == CL_SUCCESS ? binary : Bytes{};
}

}  // namespace

bool driver_keeps_programs(const DeviceProfile& profile) { return is_pocl(profile); }

std::string blob_key(const ClDevice& device, const ProgramRequest& request,
                     const std::string& options) {
  std::string text;
  text.reserve(request.source.size() + options.size() + 64);
  text += request.source;
  text += '\0';
  text += options;
  text += '\0';
  text += request.entry;
  text += '\0';
  text += request.ptx_target;
  return "opencl|" + device.fingerprint() + hash128(std::string_view(text));
}

cl::Program load_binary(const ClDevice& device, BlobStore& store, const std::string& key,
                        const std::string& options) {
  // The store has verified it: PoCL 3.1 crashes on a damaged binary instead of refusing it.
  const Bytes binary = store.get(key);
  if (binary.empty()) return {};
  return from_binary(device, binary, options);
}

void keep_binary(const ClDevice& device, BlobStore& store, const std::string& key,
                 cl::Program& built) {
  if (!store.keeps()) return;
  const Bytes binary = to_binary(device, built);
  if (binary.empty()) return;
  store.put(key, binary);
}

cl::Program keep_promoted(const ClDevice& device, BlobStore& store, const std::string& key,
                          const std::string& options, const ProgramRequest& request,
                          cl::Program& built) {
  const Bytes binary = to_binary(device, built);
  const std::string ptx = promote_ptx({reinterpret_cast<const char*>(binary.data()), binary.size()},
                                      request.ptx_target);
  if (ptx.empty()) {
    throw BuildError("kernel " + request.name + ": the driver's program binary is no PTX for the " +
                     "family of " + request.ptx_target);
  }
  const auto text = std::as_bytes(std::span(ptx));
  // Registers and spills are in the log only if it is asked for.
  const bool verbose = log_enabled(LogLevel::kDebug);
  std::string why;
  cl::Program promoted =
      from_binary(device, text, verbose ? options + " -cl-nv-verbose" : options, &why);
  if (promoted() == nullptr) {
    throw BuildError("kernel " + request.name + " does not build on " + device.profile().name +
                     " for " + request.ptx_target + "\nlog:\n" + why);
  }
  if (verbose)
    log(LogLevel::kDebug,
        "opencl: " + request.name + ": log:\n" + build_log(promoted, device.id()));
  store.put(key, text);
  return promoted;
}

}  // namespace tessera::device::opencl
