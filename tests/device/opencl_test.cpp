// SPDX-License-Identifier: Apache-2.0
// The OpenCL platform through its interface. Drivers that fail are played by replacing single
// OpenCL functions, below.
#include <gtest/gtest.h>

#if !TESSERA_HAVE_OPENCL

TEST(OpenCl, IsNotBuilt) { GTEST_SKIP() << "Tessera was built without OpenCL"; }

#else

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "device/device.hpp"
#include "tessera/error.hpp"

// ---- a driver that fails on demand --------------------------------------------------------------

namespace {

// What the next calls answer instead of doing anything; 0 = the driver's own answer.
struct Faults {
  std::atomic<std::int32_t> finish{0}, launch{0}, read{0}, buffer{0}, binary{0};
  void clear() { finish = launch = read = buffer = binary = 0; }
} faults;

template <class Function>
Function* driver(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// These are found before the loader's. Types as in CL/cl.h, which only src/device/opencl includes.
extern "C" {

std::int32_t clFinish(void* queue) {
  if (faults.finish != 0) return faults.finish;
  static auto* const real = driver<std::int32_t(void*)>("clFinish");
  return real(queue);
}

std::int32_t clEnqueueNDRangeKernel(void* queue, void* kernel, std::uint32_t dimensions,
                                    const std::size_t* offset, const std::size_t* global,
                                    const std::size_t* local, std::uint32_t waits,
                                    void* const* wait_list, void** event) {
  if (faults.launch != 0) return faults.launch;
  static auto* const real = driver<decltype(clEnqueueNDRangeKernel)>("clEnqueueNDRangeKernel");
  return real(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
}

std::int32_t clEnqueueReadBuffer(void* queue, void* memory, std::uint32_t blocking,
                                 std::size_t offset, std::size_t size, void* host,
                                 std::uint32_t waits, void* const* wait_list, void** event) {
  if (faults.read != 0) return faults.read;
  static auto* const real = driver<decltype(clEnqueueReadBuffer)>("clEnqueueReadBuffer");
  return real(queue, memory, blocking, offset, size, host, waits, wait_list, event);
}

void* clCreateBuffer(void* context, std::uint64_t flags, std::size_t size, void* host,
                     std::int32_t* code) {
  if (faults.buffer != 0) {
    *code = faults.buffer;
    return nullptr;
  }
  static auto* const real = driver<decltype(clCreateBuffer)>("clCreateBuffer");
  return real(context, flags, size, host, code);
}

void* clCreateProgramWithBinary(void* context, std::uint32_t count, void* const* devices,
                                const std::size_t* sizes, const unsigned char** binaries,
                                std::int32_t* accepted, std::int32_t* code) {
  if (faults.binary != 0) {
    *code = faults.binary;
    return nullptr;
  }
  static auto* const real =
      driver<decltype(clCreateProgramWithBinary)>("clCreateProgramWithBinary");
  return real(context, count, devices, sizes, binaries, accepted, code);
}

}  // extern "C"

namespace tessera::device {
namespace {

constexpr std::int32_t kAllocationFailure = -4, kOutOfResources = -5, kInvalidQueue = -36,
                       kInvalidBinary = -42, kInvalidGroupSize = -54;

// ---- helpers ------------------------------------------------------------------------------------

struct MemoryStore : BlobStore {
  std::map<std::string, std::vector<std::byte>, std::less<>> blobs;
  int hits = 0, misses = 0, puts = 0;

  std::vector<std::byte> get(std::string_view key) override {
    const auto found = blobs.find(key);
    ++(found == blobs.end() ? misses : hits);
    return found == blobs.end() ? std::vector<std::byte>{} : found->second;
  }
  void put(std::string_view key, std::span<const std::byte> blob) override {
    ++puts;
    blobs[std::string(key)].assign(blob.begin(), blob.end());
  }
};

struct ScaleArgs {
  std::uint32_t n;
  float factor;
};

constexpr const char* kScaleSource = R"(
typedef struct { uint n; float factor; } Args;
// x = x * factor * TIMES + bias, where bias is optional
kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void scale(global float* x, const global float* bias, Args args) {
  const uint i = get_global_id(0);
  if (i < args.n) x[i] = x[i] * args.factor * TIMES + (bias ? bias[i] : 0.0f);
}
)";

ProgramRequest scale_request(std::uint32_t times = 3) {
  ProgramRequest request;
  request.name = "scale";
  request.entry = "scale";
  request.source = kScaleSource;
  request.defines = {{"TIMES", times}};
  request.group = {8, 1, 1};
  request.bindings = 2;
  request.argument_bytes = sizeof(ScaleArgs);
  return request;
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

std::vector<float> iota(std::size_t n, float first = 0) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::vector<float> read(Stream& stream, const Buffer& buffer) {
  std::vector<float> values(buffer.size() / sizeof(float));
  stream.download(buffer, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

// Runs `scale` on x and waits for nothing.
void launch_scale(Stream& stream, const Program& program, BufferPtr x, BufferPtr bias,
                  float factor) {
  const ScaleArgs args{static_cast<std::uint32_t>(x->size() / sizeof(float)), factor};
  const std::array<BufferPtr, 2> buffers{std::move(x), std::move(bias)};
  Launch launch;
  launch.program = &program;
  launch.buffers = buffers;
  launch.arguments = std::as_bytes(std::span(&args, 1));
  launch.group = {8, 1, 1};
  launch.groups = {(args.n + 7) / 8, 1, 1};
  stream.launch(launch);
}

template <class Thrown, class Work>
std::string message_of(Work work) {
  try {
    work();
  } catch (const Thrown& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing of the expected type was thrown";
  return {};
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Holds the first device for the whole suite: opening one takes 20 ms.
class OpenCl : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    PlatformProbe probe = probe_opencl();
    for (const ProbeFailure& failure : probe.failures)
      why_none_ += failure.where + ": " + failure.why + "; ";
    if (!probe.found.empty()) {
      found_ = std::make_unique<Found>(probe.found.front());
      device_ = found_->open();
    }
  }
  static void TearDownTestSuite() {
    device_.reset();
    found_.reset();
  }
  void SetUp() override {
    if (!device_)
      GTEST_SKIP() << "no OpenCL device here (" << why_none_ << "), so nothing was tested";
    stream_ = device_->create_stream();
  }
  void TearDown() override {
    faults.clear();
    stream_.reset();
  }

  BufferPtr upload(const std::vector<float>& values) {
    BufferPtr buffer = device_->create_buffer(values.size() * sizeof(float));
    stream_->upload(*buffer, 0, bytes_of(values));
    return buffer;
  }

  static inline std::string why_none_;
  static inline std::unique_ptr<Found> found_;
  static inline DevicePtr device_;
  MemoryStore store_;
  std::unique_ptr<Stream> stream_;
};

// ---- probing ------------------------------------------------------------------------------------

TEST_F(OpenCl, ProfileIsFilledIn) {
  const DeviceProfile& p = device_->profile();
  EXPECT_EQ(p.backend, Backend::kOpenCL);
  EXPECT_NE(p.kind, DeviceKind::kOther);
  for (const std::string& text : {p.name, p.vendor, p.driver, p.compiler}) {
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find('\0'), std::string::npos);
  }
  EXPECT_TRUE(p.api_version.starts_with("OpenCL "));
  EXPECT_TRUE(p.uuid.empty() || p.uuid.size() == 32) << p.uuid;
  EXPECT_TRUE(p.pci_address.empty() || p.pci_address.size() >= 12) << p.pci_address;
  EXPECT_NE(p.vendor_id, 0U);
  EXPECT_GT(p.compute_units, 0U);
  EXPECT_GT(p.native_float_width, 0U);
  EXPECT_GE(p.max_group_size, 1U);
  EXPECT_GE(p.max_groups[2], 65535U);
  EXPECT_GE(p.local_memory, 16U * 1024);
  EXPECT_GT(p.global_memory, 0U);
  EXPECT_GT(p.max_allocation, 0U);
  EXPECT_EQ(p.max_binding, p.max_allocation);
  EXPECT_TRUE(has(p.features, Feature::kStorage16));
  EXPECT_TRUE(p.kind == DeviceKind::kCpu || !has(p.features, Feature::kCpuBf16Dot));
  EXPECT_TRUE(p.vendor_id == 0x10de || !has(p.features, Feature::kNvidiaPtx));
}

TEST_F(OpenCl, ProbingAgainGivesTheSame) {
  const PlatformProbe again = probe_opencl();
  ASSERT_FALSE(again.found.empty());
  EXPECT_EQ(again.found.front().profile.name, device_->profile().name);
  EXPECT_EQ(again.found.front().profile.driver, device_->profile().driver);
}

// A machine without any driver: the loader reads its list of drivers once, hence a process of its
// own.
TEST(OpenClWithoutDriver, IsAProbeFailure) {
  constexpr const char* kNowhere = "/nonexistent/tessera/";
  const char* vendors = std::getenv("OCL_ICD_VENDORS");
  if (vendors == nullptr || std::strcmp(vendors, kNowhere) != 0) {
    std::array<char, PATH_MAX> self{};
    ASSERT_GT(readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
    const std::string command = std::string("OCL_ICD_VENDORS=") + kNowhere +
                                " OPENCL_VENDOR_PATH=" + kNowhere + " '" + self.data() +
                                "' --gtest_filter=OpenClWithoutDriver.IsAProbeFailure > /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return;
  }
  const PlatformProbe probe = probe_opencl();
  if (!probe.found.empty()) GTEST_SKIP() << "this loader finds drivers in other ways";
  ASSERT_EQ(probe.failures.size(), 1U);
  EXPECT_TRUE(probe.failures[0].why.starts_with("no OpenCL platform: ")) << probe.failures[0].why;
}

// ---- memory -------------------------------------------------------------------------------------

TEST_F(OpenCl, UploadAndDownloadWithOffsets) {
  BufferPtr buffer = upload(iota(100));
  stream_->upload(*buffer, 40, bytes_of(std::vector<float>{-1, -2}));
  std::vector<float> part(4);
  stream_->download(*buffer, 36, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, (std::vector<float>{9, -1, -2, 12}));
}

TEST_F(OpenCl, UploadMayForgetTheSourceAtOnce) {
  // Small ones are staged, big ones waited for; the sum of the small ones goes past what is staged
  // at most.
  constexpr std::size_t kSmall = 10'000, kRounds = 60, kBig = 300'000;
  BufferPtr small = device_->create_buffer(kSmall * kRounds * sizeof(float));
  BufferPtr big = device_->create_buffer(kBig * sizeof(float));
  std::vector<float> source;
  for (std::size_t round = 0; round < kRounds; ++round) {
    source.assign(kSmall, static_cast<float>(round));
    stream_->upload(*small, round * kSmall * sizeof(float), bytes_of(source));
  }
  source = iota(kBig);
  stream_->upload(*big, 0, bytes_of(source));
  source.assign(kBig, -1);
  EXPECT_EQ(read(*stream_, *big), iota(kBig));
  const std::vector<float> result = read(*stream_, *small);
  for (std::size_t round = 0; round < kRounds; ++round) {
    EXPECT_EQ(result[round * kSmall], static_cast<float>(round));
    EXPECT_EQ(result[(round + 1) * kSmall - 1], static_cast<float>(round));
  }
}

TEST_F(OpenCl, CopyWithOffsets) {
  BufferPtr from = upload(iota(10));
  BufferPtr to = upload(std::vector<float>(10, -1));
  stream_->copy(*from, 8, *to, 20, 12);
  EXPECT_EQ(read(*stream_, *to), (std::vector<float>{-1, -1, -1, -1, -1, 2, 3, 4, -1, -1}));
  stream_->copy(*from, 0, *from, 20, 20);  // within one buffer
  EXPECT_EQ(read(*stream_, *from), (std::vector<float>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
  EXPECT_THROW(stream_->copy(*from, 0, *from, 16, 20), InvalidArgument);  // overlaps
}

TEST_F(OpenCl, FillTouchesItsRangeOnly) {
  std::vector<std::uint8_t> bytes(37, 7);
  BufferPtr buffer = device_->create_buffer(bytes.size());
  stream_->upload(*buffer, 0, bytes_of(bytes));
  stream_->fill(*buffer, 5, 23, 0xA5);
  stream_->download(*buffer, 0, std::as_writable_bytes(std::span(bytes)));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(bytes[i], i >= 5 && i < 28 ? 0xA5 : 7) << i;
}

TEST_F(OpenCl, RangesBeyondABufferAreRefused) {
  BufferPtr buffer = upload(iota(4));
  std::vector<float> values(4);
  const auto writable = std::as_writable_bytes(std::span(values));
  EXPECT_THROW(stream_->upload(*buffer, 4, bytes_of(values)), InvalidArgument);
  EXPECT_THROW(stream_->download(*buffer, 1, writable), InvalidArgument);
  EXPECT_THROW(stream_->fill(*buffer, ~std::uint64_t{0}, 2, 0), InvalidArgument);
  EXPECT_THROW(stream_->copy(*buffer, 0, *buffer, 16, 1), InvalidArgument);
  EXPECT_EQ(read(*stream_, *buffer), iota(4));
}

TEST_F(OpenCl, BuffersOfZeroBytes) {
  BufferPtr empty = device_->create_buffer(0);
  EXPECT_EQ(empty->size(), 0U);
  stream_->upload(*empty, 0, {});
  stream_->download(*empty, 0, {});
  stream_->fill(*empty, 0, 0, 1);
  stream_->copy(*empty, 0, *empty, 0, 0);
  stream_->synchronize();
  EXPECT_THROW(stream_->fill(*empty, 0, 1, 1), InvalidArgument);
}

TEST_F(OpenCl, TooLargeAnAllocationNamesTheLimit) {
  const std::uint64_t limit = device_->profile().max_allocation;
  try {
    (void)device_->create_buffer(limit + 1);
    FAIL() << "was not refused";
  } catch (const OutOfDeviceMemory& error) {
    EXPECT_EQ(error.asked(), limit + 1);
    EXPECT_EQ(error.limit(), limit);
  }
}

TEST_F(OpenCl, BuffersOfOtherDevicesAreRefused) {
  const DevicePtr other = found_->open();
  BufferPtr foreign = other->create_buffer(16);
  EXPECT_THROW(stream_->fill(*foreign, 0, 16, 0), InvalidArgument);
}

TEST_F(OpenCl, BuffersKeepTheirDevice) {
  DevicePtr other = found_->open();
  std::unique_ptr<Stream> stream = other->create_stream();
  BufferPtr buffer = other->create_buffer(16);
  other.reset();
  stream->fill(*buffer, 0, 16, 0);
  EXPECT_EQ(read(*stream, *buffer), std::vector<float>(4, 0.0F));
}

// ---- programs -----------------------------------------------------------------------------------

TEST_F(OpenCl, KernelWithDefinesAndArguments) {
  const ProgramPtr program = device_->build(scale_request(), store_);
  BufferPtr x = upload(iota(100)), bias = upload(iota(100, 1000));
  launch_scale(*stream_, *program, x, bias, 0.5F);
  stream_->synchronize();
  const std::vector<float> result = read(*stream_, *x);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto value = static_cast<float>(i);
    EXPECT_EQ(result[i], value * 1.5F + value + 1000) << i;
  }
}

TEST_F(OpenCl, AbsentBufferIsANullPointerInTheKernel) {
  const ProgramPtr program = device_->build(scale_request(), store_);
  BufferPtr x = upload(iota(9, 1)), bias = upload(iota(9));
  launch_scale(*stream_, *program, x, bias, 0);     // the kernel object remembers a buffer …
  launch_scale(*stream_, *program, x, nullptr, 1);  // … which must be gone here
  const std::vector<float> result = read(*stream_, *x);
  for (std::size_t i = 0; i < result.size(); ++i)
    EXPECT_EQ(result[i], 3.0F * static_cast<float>(i)) << i;
}

TEST_F(OpenCl, BuffersMayGoBeforeTheLaunchIsDone) {
  const ProgramPtr program = device_->build(scale_request(1), store_);
  BufferPtr x = upload(std::vector<float>(1000, 1.0F));
  for (int i = 0; i < 100; ++i)
    launch_scale(*stream_, *program, x, upload(std::vector<float>(1000, 1.0F)), 1);
  EXPECT_EQ(read(*stream_, *x), std::vector<float>(1000, 101.0F));
}

TEST_F(OpenCl, BuildErrorShowsNameOptionsAndLog) {
  ProgramRequest request = scale_request();
  request.name = "broken/scale";
  request.source =
      "#line 7 \"broken/scale.cl\"\nkernel void scale(global float* x) { x[0] = nonsense; }\n";
  const std::string text = message_of<BuildError>([&] { (void)device_->build(request, store_); });
  for (const char* part : {"broken/scale", "-DTIMES=3", "-DWG_X=8", "nonsense", "clBuildProgram"}) {
    EXPECT_TRUE(contains(text, part)) << part << " is not in: " << text;
  }
  EXPECT_EQ(store_.puts, 0);
}

TEST_F(OpenCl, BuildLogIsCutAt64KiB) {
  ProgramRequest request = scale_request();
  request.source = "";
  for (int i = 0; i < 3000; ++i) {
    request.source +=
        "#warning a line that is long enough to make the log of this program too long " +
        std::to_string(i) + "\n";
  }
  request.source += "#error stop\n";
  const std::string text = message_of<BuildError>([&] { (void)device_->build(request, store_); });
  EXPECT_LT(text.size(), 66U * 1024);
}

TEST_F(OpenCl, WrongDeclarationsAreRefusedAtTheBuild) {
  ProgramRequest request = scale_request();
  request.entry = "scala";
  EXPECT_TRUE(
      contains(message_of<BuildError>([&] { (void)device_->build(request, store_); }), "scala"));
  request = scale_request();
  request.bindings = 1;
  EXPECT_TRUE(contains(message_of<BuildError>([&] { (void)device_->build(request, store_); }),
                       "3 arguments"));
  request = scale_request();
  request.source.clear();
  EXPECT_THROW((void)device_->build(request, store_), InvalidArgument);
  request = scale_request();
  request.defines.push_back({"X -cl-fast-relaxed-math", 1});
  EXPECT_THROW((void)device_->build(request, store_), InvalidArgument);
}

TEST_F(OpenCl, WrongLaunchesAreRefused) {
  const ProgramPtr program = device_->build(scale_request(), store_);
  BufferPtr x = upload(iota(8));
  const ScaleArgs args{8, 1};
  const std::array<BufferPtr, 2> buffers{x, nullptr};
  Launch good;
  good.program = program.get();
  good.buffers = buffers;
  good.arguments = std::as_bytes(std::span(&args, 1));
  good.group = {8, 1, 1};

  Launch bad = good;
  bad.groups = {1, 0, 1};
  EXPECT_THROW(stream_->launch(bad), InvalidArgument);
  bad = good;
  bad.group = {0, 1, 1};
  EXPECT_THROW(stream_->launch(bad), InvalidArgument);
  bad = good;
  bad.program = nullptr;
  EXPECT_THROW(stream_->launch(bad), InvalidArgument);
  bad = good;
  bad.buffers = bad.buffers.first(1);
  EXPECT_THROW(stream_->launch(bad), InvalidArgument);
  bad = good;
  bad.arguments = {};
  EXPECT_THROW(stream_->launch(bad), InvalidArgument);

  // The driver's own refusal names the call, the code and the kernel.
  bad = good;
  bad.group = {4, 1, 1};
  const std::string text = message_of<DeviceError>([&] { stream_->launch(bad); });
  const std::string expected = "clEnqueueNDRangeKernel: CL_INVALID_WORK_GROUP_SIZE (" +
                               std::to_string(kInvalidGroupSize) + ") (scale, ";
  EXPECT_TRUE(text.starts_with(expected)) << text;

  stream_->launch(good);
  stream_->synchronize();
}

// ---- kept binaries ------------------------------------------------------------------------------

class OpenClBlobs : public OpenCl {
 protected:
  // Builds, runs, and says whether the result was right.
  bool works() {
    const ProgramPtr program = device_->build(scale_request(), store_);
    BufferPtr x = upload({2});
    launch_scale(*stream_, *program, x, nullptr, 5);
    return read(*stream_, *x) == std::vector<float>{30};
  }
  std::vector<std::byte>& only_blob() { return store_.blobs.begin()->second; }
};

TEST_F(OpenClBlobs, MissThenHit) {
  EXPECT_TRUE(works());
  EXPECT_EQ(store_.misses, 1);
  EXPECT_EQ(store_.puts, 1);
  ASSERT_EQ(store_.blobs.size(), 1U);
  EXPECT_TRUE(store_.blobs.begin()->first.starts_with("opencl|"));
  EXPECT_TRUE(works());
  EXPECT_EQ(store_.hits, 1);
  EXPECT_EQ(store_.puts, 1);
}

TEST_F(OpenClBlobs, KeyCoversSourceOptionsAndEntry) {
  (void)device_->build(scale_request(), store_);
  (void)device_->build(scale_request(4), store_);
  ProgramRequest request = scale_request();
  request.source += "// different\n";
  (void)device_->build(request, store_);
  request = scale_request();
  request.group = {4, 1, 1};
  (void)device_->build(request, store_);
  EXPECT_EQ(store_.blobs.size(), 4U);
  EXPECT_EQ(store_.hits, 0);
}

// The driver's part is played: PoCL 3.1 crashes on a damaged binary instead of refusing it, which
// is why the real store verifies what it has.
TEST_F(OpenClBlobs, BlobsThatTheDriverRefusesAreRebuilt) {
  ASSERT_TRUE(works());
  only_blob().assign(3, std::byte{0x7F});
  faults.binary = kInvalidBinary;  // also what PoCL says of another version's binary
  EXPECT_TRUE(works());
  EXPECT_EQ(store_.hits, 1);

  faults.clear();
  store_.blobs.clear();
  EXPECT_TRUE(works());
  EXPECT_EQ(store_.puts, 2);
}

TEST_F(OpenClBlobs, BinaryOfAnotherProgramIsRebuilt) {
  ASSERT_TRUE(works());
  ProgramRequest other = scale_request();
  other.name = other.entry = "other";
  other.source = "kernel void other(global float* x) { x[0] = 1; }\n";
  other.bindings = 1;
  other.argument_bytes = 0;
  MemoryStore others;
  (void)device_->build(other, others);
  only_blob() = others.blobs.begin()->second;
  EXPECT_TRUE(works());
  EXPECT_EQ(store_.puts, 2);
}

// ---- threads and time ---------------------------------------------------------------------------

TEST_F(OpenCl, TwoStreamsShareAProgram) {
  const ProgramPtr program = device_->build(scale_request(1), store_);
  constexpr int kLaunches = 500;
  std::array<std::vector<float>, 2> results;
  std::array<std::string, 2> errors;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      try {
        const std::unique_ptr<Stream> stream = device_->create_stream();
        const std::vector<float> ones(64, static_cast<float>(t + 1));
        BufferPtr x = device_->create_buffer(256), bias = device_->create_buffer(256);
        stream->fill(*x, 0, 256, 0);
        stream->upload(*bias, 0, bytes_of(ones));
        for (int i = 0; i < kLaunches; ++i) launch_scale(*stream, *program, x, bias, 1);
        stream->synchronize();
        results[t] = read(*stream, *x);
      } catch (const std::exception& error) {
        errors[t] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < results.size(); ++t) {
    EXPECT_EQ(errors[t], "");
    EXPECT_EQ(results[t], std::vector<float>(64, static_cast<float>((t + 1) * kLaunches)));
  }
}

TEST_F(OpenCl, TimeIsPositiveAndInOrder) {
  const ProgramPtr program = device_->build(scale_request(2), store_);
  BufferPtr x = upload(std::vector<float>(4096, 1.0F));
  launch_scale(*stream_, *program, x, nullptr, 1);
  double one = 0;
  for (int round = 0; round < 2; ++round) {
    one = stream_->time([&] { launch_scale(*stream_, *program, x, nullptr, 1); });
    EXPECT_GT(one, 0);
    EXPECT_LT(one, 10);
  }
  const double several = stream_->time([&] {
    for (int i = 0; i < 3; ++i) launch_scale(*stream_, *program, x, nullptr, 1);
  });
  EXPECT_GT(several, 0);
  launch_scale(*stream_, *program, x, nullptr, 1);
  EXPECT_EQ(read(*stream_, *x), std::vector<float>(4096, 128.0F));
  EXPECT_EQ(stream_->time([] {}), 0);
}

TEST_F(OpenCl, TimeSurvivesWorkThatThrows) {
  const ProgramPtr program = device_->build(scale_request(2), store_);
  BufferPtr x = upload({1});
  EXPECT_THROW((void)stream_->time([&] {
    launch_scale(*stream_, *program, x, nullptr, 1);
    throw InvalidArgument("on purpose");
  }),
               InvalidArgument);
  EXPECT_THROW((void)stream_->time([&] { (void)stream_->time([] {}); }), InvalidArgument);
  EXPECT_GT(stream_->time([&] { launch_scale(*stream_, *program, x, nullptr, 1); }), 0);
  EXPECT_EQ(read(*stream_, *x), std::vector<float>{4});
}

// ---- drivers that fail --------------------------------------------------------------------------

class OpenClFaults : public OpenCl {
 protected:
  // A device of its own, so that losing it leaves the suite's alone.
  void SetUp() override {
    OpenCl::SetUp();
    if (!device_) return;
    mine_ = found_->open();
    my_stream_ = mine_->create_stream();
    x_ = mine_->create_buffer(64);
    program_ = mine_->build(scale_request(1), shared_store());
  }
  void TearDown() override {
    faults.clear();
    my_stream_.reset();
    program_.reset();
    x_.reset();
    mine_.reset();
    OpenCl::TearDown();
  }
  static MemoryStore& shared_store() {
    static MemoryStore store;
    return store;
  }
  void launch() { launch_scale(*my_stream_, *program_, x_, nullptr, 1); }

  void expect_lost_for_good() {
    faults.clear();
    std::array<std::byte, 8> bytes{};
    EXPECT_THROW((void)mine_->create_buffer(8), DeviceLost);
    EXPECT_THROW((void)mine_->create_stream(), DeviceLost);
    EXPECT_THROW((void)mine_->build(scale_request(1), shared_store()), DeviceLost);
    EXPECT_THROW(my_stream_->upload(*x_, 0, bytes), DeviceLost);
    EXPECT_THROW(my_stream_->download(*x_, 0, bytes), DeviceLost);
    EXPECT_THROW(my_stream_->copy(*x_, 0, *x_, 8, 8), DeviceLost);
    EXPECT_THROW(my_stream_->fill(*x_, 0, 8, 0), DeviceLost);
    EXPECT_THROW(launch(), DeviceLost);
    EXPECT_THROW(my_stream_->flush(), DeviceLost);
    EXPECT_THROW(my_stream_->synchronize(), DeviceLost);
    EXPECT_THROW((void)my_stream_->time([] {}), DeviceLost);
    EXPECT_NO_THROW(device_->create_stream()->synchronize());   // others go on
    EXPECT_NO_THROW(found_->open()->create_stream()->flush());  // and it can be opened anew
  }

  DevicePtr mine_;
  std::unique_ptr<Stream> my_stream_;
  BufferPtr x_;
  ProgramPtr program_;
};

TEST_F(OpenClFaults, FaultSeenAtSynchronizeLosesTheDevice) {
  launch();
  faults.finish = kOutOfResources;
  const std::string text = message_of<DeviceLost>([&] { my_stream_->synchronize(); });
  EXPECT_TRUE(contains(text, "clFinish: CL_OUT_OF_RESOURCES (-5)")) << text;
  expect_lost_for_good();
}

TEST_F(OpenClFaults, InvalidQueueAtALaunchLosesTheDevice) {
  faults.launch = kInvalidQueue;
  EXPECT_THROW(launch(), DeviceLost);
  expect_lost_for_good();
}

TEST_F(OpenClFaults, TooFewResourcesForALaunchDoNot) {
  faults.launch = kOutOfResources;
  const std::string text = message_of<DeviceError>([&] { launch(); });
  EXPECT_TRUE(text.starts_with("clEnqueueNDRangeKernel: CL_OUT_OF_RESOURCES (-5)")) << text;
  faults.clear();
  EXPECT_NO_THROW(launch());
  EXPECT_NO_THROW(my_stream_->synchronize());
}

TEST_F(OpenClFaults, ALaunchThatFailsWithABrokenQueueLosesTheDevice) {
  faults.launch = kOutOfResources;
  faults.finish = kInvalidQueue;
  EXPECT_THROW(launch(), DeviceLost);
  expect_lost_for_good();
}

TEST_F(OpenClFaults, FaultSeenAtADownloadLosesTheDevice) {
  std::array<std::byte, 8> bytes{};
  faults.read = kOutOfResources;
  EXPECT_THROW(my_stream_->download(*x_, 0, bytes), DeviceError);  // the queue still works
  EXPECT_NO_THROW(my_stream_->synchronize());
  faults.finish = kInvalidQueue;
  EXPECT_THROW(my_stream_->download(*x_, 0, bytes), DeviceLost);
  expect_lost_for_good();
}

TEST_F(OpenClFaults, LateAllocationFailureIsOutOfMemory) {
  faults.launch = kAllocationFailure;
  try {
    launch();
    ADD_FAILURE() << "was not refused";
  } catch (const OutOfDeviceMemory& error) {
    EXPECT_EQ(error.asked(), x_->size());
  }
  faults.clear();
  EXPECT_NO_THROW(launch());
}

TEST_F(OpenClFaults, BuffersThatTheDriverRefuses) {
  for (const std::int32_t code : {kAllocationFailure, kOutOfResources, -6, -61}) {
    faults.buffer = code;
    try {
      (void)mine_->create_buffer(4096);
      ADD_FAILURE() << "was not refused";
    } catch (const OutOfDeviceMemory& error) {
      EXPECT_EQ(error.asked(), 4096U);
      EXPECT_GT(error.limit(), 0U);
      EXPECT_TRUE(contains(error.what(), "clCreateBuffer: CL_")) << error.what();
    }
  }
  faults.clear();
  EXPECT_NO_THROW((void)mine_->create_buffer(4096));
}

TEST_F(OpenClFaults, AChildAfterForkIsRefusedAndDoesNotHang) {
  launch();
  my_stream_->synchronize();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    int refused = 0;
    const auto expect = [&](auto&& work) {
      try {
        work();
      } catch (const DeviceLost&) {
        ++refused;
      }
    };
    expect([&] { launch(); });
    expect([&] { my_stream_->synchronize(); });
    expect([&] { (void)mine_->create_buffer(8); });
    expect([&] { (void)found_->open(); });
    my_stream_.reset();
    program_.reset();
    x_.reset();
    mine_.reset();
    _exit(refused == 4 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  launch();  // the parent goes on
  my_stream_->synchronize();
}

}  // namespace
}  // namespace tessera::device

#endif  // TESSERA_HAVE_OPENCL
