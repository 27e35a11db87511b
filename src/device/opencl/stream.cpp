// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/stream.hpp"

#include <array>
#include <cstring>
#include <string>
#include <typeinfo>
#include <utility>

#include "device/opencl/errors.hpp"
#include "device/opencl/program.hpp"
#include "tessera/error.hpp"

namespace tessera::device::opencl {
namespace {

// A blocking write drains the queue. Small uploads (tables, lengths) between launches go through a
// copy instead.
constexpr std::size_t kLargestStaged = std::size_t{64} * 1024;
constexpr std::size_t kMostStaged = std::size_t{1024} * 1024;

std::string to_text(const Dim3& d) {
  return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
}

bool has_failed(cl_event event) {
  cl_int status = CL_COMPLETE;
  return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                        nullptr) == CL_SUCCESS &&
         status < 0;
}

bool has_zero(const Dim3& d) { return d.x == 0 || d.y == 0 || d.z == 0; }

}  // namespace

// While it lives, work goes to the timing queue. The two queues never hold work at the same time,
// so that together they are one in-order stream.
class ClStream::TimingScope {
 public:
  TimingScope(ClStream& stream, Timing& timing) : stream_(stream) {
    stream_.active_ = stream_.timing_queue_();
    stream_.timing_ = &timing;
  }
  ~TimingScope() {
    if (!stream_.device_->lost() && !stream_.device_->given_up()) {
      clFinish(stream_.timing_queue_());  // for when `work` threw; its error is the one to report
    }
    stream_.active_ = stream_.queue_();
    stream_.timing_ = nullptr;
  }
  TimingScope(const TimingScope&) = delete;
  TimingScope& operator=(const TimingScope&) = delete;

 private:
  ClStream& stream_;
};

ClStream::ClStream(std::shared_ptr<const ClDevice> device)
    : device_(std::move(device)), queue_(create_queue(0)), active_(queue_()) {}

ClStream::ClStream(std::shared_ptr<const ClDevice> device, cl::CommandQueue queue, bool in_order)
    : device_(std::move(device)),
      queue_(std::move(queue)),
      active_(queue_()),
      foreign_(true),
      chained_(!in_order) {}

ClStream::~ClStream() {
  if (device_->given_up()) {
    abandon(queue_);
    abandon(timing_queue_);
    for (cl::Event& event : waits_) abandon(event);
  } else if (!device_->lost() && (!foreign_ || !staged_.empty())) {
    // On the application's queue only host memory has to be waited for: the driver keeps the rest.
    finish();
  }
}

template <class Call>
cl_int ClStream::enqueue(Call call, cl_event* event) {
  if (!chained_ || active_ != queue_()) [[likely]]
    return call(cl_uint{0}, nullptr, event);
  wait_list_.clear();
  for (const cl::Event& wait : waits_) wait_list_.push_back(wait());
  waits_.reserve(1);
  cl_event done = nullptr;
  const cl_int code = call(static_cast<cl_uint>(wait_list_.size()),
                           wait_list_.empty() ? nullptr : wait_list_.data(), &done);
  if (code != CL_SUCCESS) {
    // What failed is said now, and must not fail all that comes.
    std::erase_if(waits_, [](const cl::Event& wait) { return has_failed(wait()); });
    return code;
  }
  waits_.clear();
  waits_.emplace_back(done, event != nullptr);  // counted once more for the caller
  if (event != nullptr) *event = done;
  return code;
}

void ClStream::wait_for(std::span<const cl_event> events) {
  device_->require_usable();
  if (events.empty()) return;
  if (!chained_) {
    device_->check(clEnqueueBarrierWithWaitList(active_, static_cast<cl_uint>(events.size()),
                                                events.data(), nullptr),
                   "clEnqueueBarrierWithWaitList");
    return;
  }
  std::vector<cl::Event> waits = waits_;
  for (cl_event event : events) waits.emplace_back(event, true);
  waits_ = std::move(waits);
}

cl::Event ClStream::event_after() {
  device_->require_usable();
  cl_event event = nullptr;
  if (has_nothing_to_wait_for()) {
    cl_int code = CL_SUCCESS;
    cl::Event done(clCreateUserEvent(device_->context(), &code), false);
    device_->check(code, "clCreateUserEvent");
    device_->check(clSetUserEventStatus(done(), CL_COMPLETE), "clSetUserEventStatus");
    return done;
  }
  // Without a list a marker waits for all of an in-order queue, which is what the stream is then.
  device_->check(enqueue(
                     [&](cl_uint count, const cl_event* waits, cl_event* done) {
                       return clEnqueueMarkerWithWaitList(active_, count, waits, done);
                     },
                     &event),
                 "clEnqueueMarkerWithWaitList");
  cl::Event done(event, false);
  flush();  // whoever waits for the event can't flush a queue of our own
  return done;
}

cl_int ClStream::finish() {
  if (!foreign_ || active_ != queue_()) return clFinish(active_);
  if (has_nothing_to_wait_for()) return CL_SUCCESS;
  cl_event event = nullptr;
  cl_int code = enqueue(
      [&](cl_uint count, const cl_event* waits, cl_event* done) {
        return clEnqueueMarkerWithWaitList(active_, count, waits, done);
      },
      &event);
  if (code != CL_SUCCESS) return code;
  const cl::Event last(event, false);
  code = clWaitForEvents(1, &event);
  waits_.clear();  // what failed must not fail all that comes
  return code;
}

cl::CommandQueue ClStream::create_queue(cl_command_queue_properties properties) const {
  cl_int code = CL_SUCCESS;
  // The form of OpenCL 1.2, which every later version still has.
  cl::CommandQueue queue(clCreateCommandQueue(device_->context(), device_->id(), properties, &code),
                         false);
  device_->check(code, "clCreateCommandQueue");
  return queue;
}

cl_mem ClStream::memory_of(const Buffer& buffer) const {
  if (typeid(buffer) != typeid(ClBuffer)) [[unlikely]] {
    throw InvalidArgument("a buffer belongs to another platform than the OpenCL stream");
  }
  const auto& own = static_cast<const ClBuffer&>(buffer);
  if (own.device() != device_.get()) [[unlikely]] {
    throw InvalidArgument("a buffer belongs to another device than the stream");
  }
  return own.memory();
}

cl_mem ClStream::checked_range(const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes,
                               const char* what) const {
  device_->require_usable();
  if (bytes > buffer.size() || offset > buffer.size() - bytes) {
    throw InvalidArgument(std::string(what) + " of " + std::to_string(bytes) + " bytes at offset " +
                          std::to_string(offset) + " does not fit into a buffer of " +
                          std::to_string(buffer.size()));
  }
  return memory_of(buffer);
}

void ClStream::check_submit(cl_int code, const char* call, std::uint64_t reached) {
  if (code != CL_SUCCESS) [[unlikely]] {
    fail_submit(code, call, reached);
  }
}

void ClStream::fail_submit(cl_int code, const char* call, std::uint64_t reached,
                           const std::string& detail) {
  // Too few resources for this one command, or the aftermath of a fault: only the second breaks
  // the queue.
  if (code == CL_OUT_OF_RESOURCES) {
    if (const cl_int after = finish();
        after != CL_SUCCESS && after != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
      device_->lose(describe(call, code) + detail + ", then " + describe("clFinish", after));
    }
  }
  // Drivers that allocate on first use.
  if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE) {
    const std::uint64_t limit = device_->profile().global_memory;
    throw OutOfDeviceMemory(describe(call, code) + detail + ": buffers of " +
                                std::to_string(reached) + " bytes, the device has " +
                                std::to_string(limit),
                            reached, limit);
  }
  device_->fail(code, call, detail);
}

void ClStream::drained() {
  staged_.clear();
  staged_bytes_ = 0;
}

void ClStream::upload(Buffer& target, std::uint64_t offset, std::span<const std::byte> bytes) {
  cl_mem memory = checked_range(target, offset, bytes.size(), "upload");
  if (bytes.empty()) return;
  if (bytes.size() > kLargestStaged || staged_bytes_ + bytes.size() > kMostStaged) {
    check_submit(enqueue([&](cl_uint count, const cl_event* waits, cl_event* done) {
                   return clEnqueueWriteBuffer(active_, memory, CL_TRUE, offset, bytes.size(),
                                               bytes.data(), count, waits, done);
                 }),
                 "clEnqueueWriteBuffer", target.size());
    drained();
    return;
  }
  auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  staged_.reserve(staged_.size() + 1);
  check_submit(enqueue([&](cl_uint count, const cl_event* waits, cl_event* done) {
                 return clEnqueueWriteBuffer(active_, memory, CL_FALSE, offset, bytes.size(),
                                             copy.get(), count, waits, done);
               }),
               "clEnqueueWriteBuffer", target.size());
  staged_.push_back(std::move(copy));
  staged_bytes_ += bytes.size();
}

void ClStream::download(const Buffer& source, std::uint64_t offset, std::span<std::byte> bytes) {
  cl_mem memory = checked_range(source, offset, bytes.size(), "download");
  if (bytes.empty()) return;
  check_submit(enqueue([&](cl_uint count, const cl_event* waits, cl_event* done) {
                 return clEnqueueReadBuffer(active_, memory, CL_TRUE, offset, bytes.size(),
                                            bytes.data(), count, waits, done);
               }),
               "clEnqueueReadBuffer", source.size());
  drained();
}

void ClStream::copy(const Buffer& source, std::uint64_t source_offset, Buffer& target,
                    std::uint64_t target_offset, std::uint64_t bytes) {
  cl_mem from = checked_range(source, source_offset, bytes, "copy");
  cl_mem to = checked_range(target, target_offset, bytes, "copy");
  if (bytes == 0) return;
  if (from == to && source_offset < target_offset + bytes &&
      target_offset < source_offset + bytes) {
    throw InvalidArgument("copy of " + std::to_string(bytes) + " bytes from offset " +
                          std::to_string(source_offset) + " to " + std::to_string(target_offset) +
                          " of one buffer: the ranges overlap");
  }
  check_submit(enqueue([&](cl_uint count, const cl_event* waits, cl_event* done) {
                 return clEnqueueCopyBuffer(active_, from, to, source_offset, target_offset, bytes,
                                            count, waits, done);
               }),
               "clEnqueueCopyBuffer", source.size() + target.size());
}

void ClStream::fill(Buffer& target, std::uint64_t offset, std::uint64_t bytes, std::uint8_t value) {
  cl_mem memory = checked_range(target, offset, bytes, "fill");
  if (bytes == 0) return;
  check_submit(enqueue([&](cl_uint count, const cl_event* waits, cl_event* done) {
                 return clEnqueueFillBuffer(active_, memory, &value, sizeof(value), offset, bytes,
                                            count, waits, done);
               }),
               "clEnqueueFillBuffer", target.size());
}

void ClStream::set_arguments(cl_kernel kernel, const Launch& launch) const {
  // All of them, each time: a driver may look an argument up when it is set, and a freed buffer's
  // handle may come back as another buffer's, so remembering what was set last would be wrong. On
  // PoCL one costs 10 ns.
  cl_uint index = 0;
  for (const BufferPtr& buffer : launch.buffers) {
    const cl_mem memory = buffer ? memory_of(*buffer) : nullptr;
    device_->check(clSetKernelArg(kernel, index++, sizeof(cl_mem), buffer ? &memory : nullptr),
                   "clSetKernelArg");
  }
  if (!launch.arguments.empty()) {
    device_->check(clSetKernelArg(kernel, index, launch.arguments.size(), launch.arguments.data()),
                   "clSetKernelArg");
  }
}

void ClStream::launch(const Launch& launch) {
  device_->require_usable();
  if (launch.program == nullptr || typeid(*launch.program) != typeid(ClProgram)) [[unlikely]] {
    throw InvalidArgument("launch without an OpenCL program");
  }
  const auto& program = static_cast<const ClProgram&>(*launch.program);
  if (program.device() != device_.get()) [[unlikely]] {
    throw InvalidArgument("launch of " + program.name() + ": it was built for another device");
  }
  if (launch.buffers.size() != program.bindings() ||
      launch.arguments.size() != program.argument_bytes()) [[unlikely]] {
    throw InvalidArgument(
        "launch of " + program.name() + " with " + std::to_string(launch.buffers.size()) +
        " buffers and " + std::to_string(launch.arguments.size()) + " argument bytes instead of " +
        std::to_string(program.bindings()) + " and " + std::to_string(program.argument_bytes()));
  }
  if (has_zero(launch.groups) || has_zero(launch.group)) [[unlikely]] {
    throw InvalidArgument("launch of " + program.name() + " with " + to_text(launch.groups) +
                          " groups of " + to_text(launch.group));
  }

  const ClProgram::Lease lease = program.borrow();
  set_arguments(lease.kernel(), launch);
  const std::array<std::size_t, 3> local = {launch.group.x, launch.group.y, launch.group.z};
  std::array<std::size_t, 3> global = {local[0] * launch.groups.x, local[1] * launch.groups.y,
                                       local[2] * launch.groups.z};
  std::array<std::size_t, 3> offset{};  // as kParts of program.cpp reads it
  if (const Part& part = launch.part; part.count != 0) {
    std::size_t& along = global.at(part.axis);
    offset = {part.first, along / local.at(part.axis), part.axis};
    along = local.at(part.axis) * part.count;
  }
  cl_event event = nullptr;
  cl::Event none;
  const cl_int code = device_->compile("clEnqueueNDRangeKernel", none, [&] {
    return enqueue(
        [&](cl_uint count, const cl_event* waits, cl_event* done) {
          return clEnqueueNDRangeKernel(active_, lease.kernel(), 3, offset.data(), global.data(),
                                        local.data(), count, waits, done);
        },
        timing_ != nullptr ? &event : nullptr);
  });
  if (code != CL_SUCCESS) [[unlikely]] {
    std::uint64_t reached = 0;
    for (const BufferPtr& buffer : launch.buffers) reached += buffer ? buffer->size() : 0;
    fail_submit(code, "clEnqueueNDRangeKernel", reached,
                " (" + program.name() + ", " + to_text(launch.groups) + " groups of " +
                    to_text(launch.group) + ")");
  }
  if (timing_ != nullptr) {
    timing_->last = cl::Event(event, false);
    if (timing_->first() == nullptr) timing_->first = timing_->last;
  }
}

void ClStream::flush() {
  device_->require_usable();
  if (!foreign_) check_submit(clFlush(active_), "clFlush", 0);
}

void ClStream::synchronize() {
  device_->require_usable();
  device_->check_wait(finish(), foreign_ ? "clWaitForEvents" : "clFinish");
  drained();
}

// Profiling makes every launch dearer (PoCL 3.1: 0.57 instead of 0.53 us; GPU drivers: timestamps
// around each command) and only time() needs it, so it has a queue of its own, and streams that are
// never timed never pay.
double ClStream::time(const std::function<void()>& work) {
  if (timing_ != nullptr) throw InvalidArgument("time() inside of time() on one stream");
  synchronize();
  if (timing_queue_() == nullptr) timing_queue_ = create_queue(CL_QUEUE_PROFILING_ENABLE);
  Timing timing;
  {
    const TimingScope scope(*this, timing);
    work();
    synchronize();
  }
  return timing.first() == nullptr ? 0.0 : seconds(timing);
}

double ClStream::seconds(const Timing& timing) const {
  cl_int status = CL_COMPLETE;
  device_->check(clGetEventInfo(timing.last(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                &status, nullptr),
                 "clGetEventInfo");
  if (status < 0) device_->check_wait(status, "a timed launch");
  cl_ulong start = 0;
  cl_ulong end = 0;
  device_->check(clGetEventProfilingInfo(timing.first(), CL_PROFILING_COMMAND_START, sizeof(start),
                                         &start, nullptr),
                 "clGetEventProfilingInfo");
  device_->check(
      clGetEventProfilingInfo(timing.last(), CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr),
      "clGetEventProfilingInfo");
  return end > start ? static_cast<double>(end - start) * 1e-9 : 0.0;
}

}  // namespace tessera::device::opencl
