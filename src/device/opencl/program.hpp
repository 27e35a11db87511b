// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/opencl/cl.hpp"
#include "device/opencl/device.hpp"

namespace tessera::device::opencl {

// A cl_kernel holds its arguments between clSetKernelArg and the enqueue, so two threads cannot
// share one. A launch borrows one for that long; there are as many as ever launched at the same
// time.
class ClProgram final : public Program {
 public:
  class Lease {
   public:
    Lease(const ClProgram& program, cl::Kernel kernel)
        : program_(program), kernel_(std::move(kernel)) {}
    ~Lease() { program_.give_back(std::move(kernel_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    cl_kernel kernel() const { return kernel_(); }

   private:
    const ClProgram& program_;
    cl::Kernel kernel_;
  };

  // Throws BuildError if the program has no kernel of the requested name and number of arguments.
  ClProgram(std::shared_ptr<const ClDevice> device, cl::Program program,
            const ProgramRequest& request);
  ~ClProgram() override;
  ClProgram(const ClProgram&) = delete;
  ClProgram& operator=(const ClProgram&) = delete;

  Lease borrow() const;

  const ClDevice* device() const { return device_.get(); }
  const std::string& name() const { return name_; }
  std::uint32_t bindings() const { return bindings_; }
  std::uint32_t argument_bytes() const { return argument_bytes_; }

 private:
  cl::Kernel create_kernel(cl_int& code) const;
  void give_back(cl::Kernel kernel) const noexcept;

  std::shared_ptr<const ClDevice> device_;
  cl::Program program_;
  std::string name_;
  std::string entry_;
  std::uint32_t bindings_;
  std::uint32_t argument_bytes_;
  mutable std::mutex mutex_;
  mutable std::size_t kernels_ = 0;  // that exist
  mutable std::vector<cl::Kernel>
      spare_;  // capacity >= kernels_, so that giving back never allocates
};

std::string build_log(const cl::Program& program, cl_device_id device);

// "-cl-std=CL1.2 -w -DNAME=VALUE …". Throws InvalidArgument for a name that is no identifier.
std::string build_options(const ProgramRequest& request);

ProgramPtr build_program(const std::shared_ptr<const ClDevice>& device,
                         const ProgramRequest& request, BlobStore& store);

}  // namespace tessera::device::opencl
