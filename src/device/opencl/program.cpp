// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/program.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <sstream>
#include <string_view>

#include "base/large_registers.hpp"
#include "base/system/log.hpp"
#include "base/vendor_ids.hpp"
#include "device/opencl/binary.hpp"
#include "device/opencl/errors.hpp"
#include "tessera/error.hpp"

namespace tessera::device::opencl {
namespace {

constexpr std::size_t kLongestLog = std::size_t{64} * 1024;

// The first errors explain the later ones, so the end is what goes.
std::string shorten(std::string text) {
  constexpr std::string_view kNote = "\n(the rest of the log was cut off)";
  if (text.size() <= kLongestLog) return text;
  text.resize(kLongestLog - kNote.size());
  return text.append(kNote);
}

[[noreturn]] void throw_build_error(std::string_view name, std::string_view device,
                                    std::string_view options, std::string_view why,
                                    std::string_view build_log) {
  std::string text = "kernel " + std::string(name) + " does not build on " + std::string(device);
  text.append(": ").append(why);
  text.append("\noptions: ").append(options);
  if (!build_log.empty()) text.append("\nlog:\n").append(build_log);
  throw BuildError(text);
}

cl::Program build_from_source(const ClDevice& device, const ProgramRequest& request,
                              const std::string& options) {
  const char* text = request.source.c_str();
  const std::size_t size = request.source.size();
  const cl_device_id id = device.id();
  cl_int code = CL_SUCCESS;
  cl::Program program(clCreateProgramWithSource(device.context(), 1, &text, &size, &code), false);
  device.check(code, "clCreateProgramWithSource");
  code = device.compile("clBuildProgram", program, [&] {
    return clBuildProgram(program(), 1, &id, options.c_str(), nullptr, nullptr);
  });
  if (always_means_lost(code)) device.fail(code, "clBuildProgram");
  if (code != CL_SUCCESS) {
    throw_build_error(request.name, device.profile().name, options,
                      describe("clBuildProgram", code), shorten(build_log(program, id)));
  }
  if (log_enabled(LogLevel::kDebug)) {
    const std::string notes = build_log(program, id);
    if (notes.find_first_not_of(" \n") != std::string::npos) {
      std::istringstream lines(shorten(notes));
      for (std::string line; std::getline(lines, line);) {
        log(LogLevel::kDebug, "opencl: log of " + request.name + ": " + line);
      }
    }
  }
  return program;
}

// In front of kernels that are launched in parts. A launch says in its global offset, which changes
// no work-group's id, the first work-group of the part, how many there are in the whole grid (0:
// this is the whole), and the axis.
constexpr std::string_view kParts = R"(
static inline bool part_of_axis(uint axis) { return get_global_offset(1) != 0 && get_global_offset(2) == axis; }
static inline size_t part_group_id(uint axis) {
  return get_group_id(axis) + (part_of_axis(axis) ? get_global_offset(0) : 0);
}
static inline size_t part_num_groups(uint axis) {
  return part_of_axis(axis) ? get_global_offset(1) : get_num_groups(axis);
}
static inline size_t part_global_id(uint axis) { return part_group_id(axis) * get_local_size(axis) + get_local_id(axis); }
static inline size_t part_global_size(uint axis) { return part_num_groups(axis) * get_local_size(axis); }
#define get_group_id part_group_id
#define get_num_groups part_num_groups
#define get_global_id part_global_id
#define get_global_size part_global_size
#line 1
)";

bool is_identifier(std::string_view name) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), is_word);
}

class Stopwatch {
 public:
  std::string milliseconds() const {
    const auto taken = std::chrono::round<std::chrono::milliseconds>(Clock::now() - start_);
    return std::to_string(taken.count()) + " ms";
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

std::string build_log(const cl::Program& program, cl_device_id device) {
  std::size_t size = 0;
  if (clGetProgramBuildInfo(program(), device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) !=
      CL_SUCCESS) {
    return "(the driver gives no log)";
  }
  std::string text(size, '\0');
  clGetProgramBuildInfo(program(), device, CL_PROGRAM_BUILD_LOG, size, text.data(), nullptr);
  text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
  return text;
}

std::string build_options(const ProgramRequest& request) {
  // No optimisation flags: -cl-fast-relaxed-math breaks the exponent trick of the softmax, the
  // others gain nothing. Without -w PoCL writes the number of its warnings to stderr.
  std::string options = "-cl-std=CL1.2 -w";
  const auto define = [&](std::string_view name, std::uint32_t value) {
    if (!is_identifier(name)) {
      throw InvalidArgument("kernel " + request.name + ": '" + std::string(name) +
                            "' can't be the name of a macro");
    }
    options.append(" -D").append(name).append("=").append(std::to_string(value));
  };
  for (const Define& entry : request.defines) {
    if (entry.name == kLargeRegisters) {
      if (entry.value != 0) options += " -cl-intel-256-GRF-per-thread";
    } else {
      define(entry.name, entry.value);
    }
  }
  const std::array<std::pair<std::string_view, std::uint32_t>, 3> group = {
      {{"WG_X", request.group.x}, {"WG_Y", request.group.y}, {"WG_Z", request.group.z}}};
  for (const auto& [name, value] : group) {
    const bool given = std::any_of(request.defines.begin(), request.defines.end(),
                                   [name = name](const Define& d) { return d.name == name; });
    if (!given) define(name, value);
  }
  return options;
}

ProgramPtr build_program(const std::shared_ptr<const ClDevice>& device, const ProgramRequest& given,
                         BlobStore& store) {
  if (given.source.empty())
    throw InvalidArgument("kernel " + given.name + " has no OpenCL C source");
  ProgramRequest request = given;
  if (request.grid) request.source.insert(0, kParts);
  const std::string options = build_options(request);
  const std::string key = blob_key(*device, request, options);
  const Stopwatch stopwatch;

  if (const cl::Program kept = load_binary(*device, store, key, options); kept() != nullptr) {
    try {
      auto program = std::make_shared<ClProgram>(device, kept, request);
      if (log_enabled(LogLevel::kDebug)) {
        log(LogLevel::kDebug,
            "opencl: " + request.name + " from its kept binary in " + stopwatch.milliseconds());
      }
      return program;
    } catch (const DeviceLost&) {
      throw;
    } catch (const Error& error) {
      log(LogLevel::kInfo, std::string("opencl: a kept program binary is not what it should be, "
                                       "building from source: ") +
                               error.what());
    }
  }

  cl::Program built = build_from_source(*device, request, options);
  if (request.ptx_target.empty()) {
    keep_binary(*device, store, key, built);
  } else {
    built = keep_promoted(*device, store, key, options, request, built);
  }
  auto program = std::make_shared<ClProgram>(device, std::move(built), request);
  if (log_enabled(LogLevel::kDebug)) {
    log(LogLevel::kDebug,
        "opencl: " + request.name + " from source in " + stopwatch.milliseconds());
  }
  return program;
}

ClProgram::ClProgram(std::shared_ptr<const ClDevice> device, cl::Program program,
                     const ProgramRequest& request)
    : device_(std::move(device)),
      program_(std::move(program)),
      name_(request.name),
      entry_(request.entry),
      bindings_(request.bindings),
      argument_bytes_(request.argument_bytes) {
  cl_int code = CL_SUCCESS;
  cl::Kernel kernel = create_kernel(code);
  if (always_means_lost(code)) device_->fail(code, "clCreateKernel");
  const auto refuse = [&](const std::string& why) {
    throw_build_error(name_, device_->profile().name, build_options(request), why, {});
  };
  if (code != CL_SUCCESS) {
    refuse("kernel function '" + entry_ + "': " + describe("clCreateKernel", code));
  }

  cl_uint arguments = 0;
  device_->check(
      clGetKernelInfo(kernel(), CL_KERNEL_NUM_ARGS, sizeof(arguments), &arguments, nullptr),
      "clGetKernelInfo(CL_KERNEL_NUM_ARGS)");
  const std::uint32_t expected = bindings_ + (argument_bytes_ > 0 ? 1 : 0);
  if (arguments != expected) {
    refuse("kernel function '" + entry_ + "' takes " + std::to_string(arguments) +
           " arguments, but " + std::to_string(bindings_) + " buffers and " +
           (argument_bytes_ > 0 ? "an" : "no") + " argument struct were declared");
  }

  // Registers can allow fewer work-items than the device's general limit. Drivers report that at
  // the launch with the same code as a lost device, so find out now.
  std::size_t most = 0;
  device_->check(clGetKernelWorkGroupInfo(kernel(), device_->id(), CL_KERNEL_WORK_GROUP_SIZE,
                                          sizeof(most), &most, nullptr),
                 "clGetKernelWorkGroupInfo(CL_KERNEL_WORK_GROUP_SIZE)");
  // NVIDIA's driver says 256 of every kernel, and launches larger groups where the kernel demands
  // their size: ptxas has kept to that.
  std::array<std::size_t, 3> demanded{};
  device_->check(
      clGetKernelWorkGroupInfo(kernel(), device_->id(), CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                               sizeof(demanded), demanded.data(), nullptr),
      "clGetKernelWorkGroupInfo(CL_KERNEL_COMPILE_WORK_GROUP_SIZE)");
  if (device_->profile().vendor_id == kVendorNvidia && demanded[0] != 0) most = 0;
  const std::uint64_t wanted = std::uint64_t{request.group.x} * request.group.y * request.group.z;
  if (most != 0 && wanted > most) {
    refuse("a work-group has " + std::to_string(wanted) + " work-items, this kernel allows " +
           std::to_string(most));
  }
  give_back(std::move(kernel));
}

ClProgram::~ClProgram() {
  if (!device_->given_up()) return;
  for (cl::Kernel& kernel : spare_) abandon(kernel);
  abandon(program_);
}

cl::Kernel ClProgram::create_kernel(cl_int& code) const {
  {
    const std::lock_guard lock(mutex_);
    spare_.reserve(kernels_ + 1);
    ++kernels_;
  }
  cl::Kernel kernel;
  code = device_->compile("clCreateKernel", kernel, [&] {
    cl_int created = CL_SUCCESS;
    kernel = cl::Kernel(clCreateKernel(program_(), entry_.c_str(), &created), false);
    return created;
  });
  return kernel;
}

ClProgram::Lease ClProgram::borrow() const {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      cl::Kernel kernel = std::move(spare_.back());
      spare_.pop_back();
      return {*this, std::move(kernel)};
    }
  }
  cl_int code = CL_SUCCESS;
  cl::Kernel kernel = create_kernel(code);
  device_->check(code, "clCreateKernel");
  return {*this, std::move(kernel)};
}

void ClProgram::give_back(cl::Kernel kernel) const noexcept {
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(kernel));
}

}  // namespace tessera::device::opencl
