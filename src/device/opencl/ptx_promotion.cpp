// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/ptx_promotion.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "base/system/log.hpp"
#include "device/no_store.hpp"
#include "device/opencl/device.hpp"
#include "tessera/error.hpp"

namespace tessera::device::opencl {
namespace {

constexpr std::string_view kMarker = "//@";

// Every kernel that can be launched fits a multiprocessor once. Said aloud, it gives ptxas the cap
// on registers without which it ignores setmaxnreg.
constexpr std::string_view kOneGroupFits = "\n.minnctapersm 1";

// One warpgroup multiplies a[64][16] by b[8][16]^T in whole numbers, exact in half and in the sum,
// and leaves the largest difference that each work-item sees. Local memory holds cores of 8 rows x
// 16 bytes, 128 bytes apart along k and 256 along rows; item t has rows t / 32 * 16 + t % 32 / 4
// (+ 8) and columns 2 * (t % 4) (+ 1).
constexpr std::string_view kProbe = R"(
#define A(row, k) (float)(((row) * 7 + (k) * 3) % 17 - 8)
#define B(row, k) (float)(((row) * 5 + (k) * 11) % 13 - 6)
#define CORE(row, k) (((row) / 8 * 2 + (k) / 8) * 64 + (row) % 8 * 8 + (k) % 8)
#define MATRIX(p) (((ulong)((uint)(size_t)(p) & 0x3ffff) >> 4) | 8ul << 16 | 16ul << 32)
__attribute__((reqd_work_group_size(128, 1, 1))) kernel void wgmma_probe(global float* worst) {
  local ushort a[64 * 16] __attribute__((aligned(1024)));
  local ushort b[8 * 16] __attribute__((aligned(1024)));
  const int t = get_local_id(0);
  for (int i = t; i < 64 * 16; i += 128) vstore_half(A(i / 16, i % 16), CORE(i / 16, i % 16), (local half*)a);
  vstore_half(B(t / 16, t % 16), CORE(t / 16, t % 16), (local half*)b);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  barrier(CLK_LOCAL_MEM_FENCE);
  float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  asm volatile("//@ wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("//@ wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(MATRIX(a)), "l"(MATRIX(b)));
  asm volatile("//@ wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("//@ wgmma.wait_group.sync.aligned 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory");
  float most = 0.0f;
  for (int i = 0; i < 4; ++i) {
    const int row = t / 32 * 16 + t % 32 / 4 + i / 2 * 8, column = 2 * (t % 4) + i % 2;
    float sum = 0.0f;
    for (int k = 0; k < 16; ++k) sum += A(row, k) * B(column, k);
    most = fmax(most, fabs(sum - d[i]));
  }
  worst[t] = most;
}
)";
constexpr std::size_t kItems = 128;

bool multiplies_right(const std::shared_ptr<ClDevice>& device) {
  ProgramRequest request;
  request.name = "wgmma_probe";
  request.entry = "wgmma_probe";
  request.source = kProbe;
  request.ptx_target = "sm_90a";
  request.group = {kItems, 1, 1};
  request.bindings = 1;
  NoStore store;
  const ProgramPtr program = device->build(request, store);
  std::array<float, kItems> worst{};
  const std::array<BufferPtr, 1> buffers{device->create_buffer(sizeof worst)};
  const auto stream = device->create_stream();
  stream->fill(*buffers[0], 0, sizeof worst, 0xff);  // NaN
  stream->launch({.program = program.get(),
                  .buffers = buffers,
                  .arguments = {},
                  .groups = {1, 1, 1},
                  .group = request.group});
  stream->download(*buffers[0], 0, std::as_writable_bytes(std::span(worst)));
  return std::ranges::all_of(worst, [](float error) { return error == 0.0f; });
}

}  // namespace

std::string promote_ptx(std::string_view binary, std::string_view target) {
  if (target.empty()) return {};
  std::string ptx(binary.substr(0, binary.find('\0')));  // binaries end in a NUL
  const std::string family = ".target " + std::string(target.substr(0, target.size() - 1));
  const std::size_t line = ptx.find(family);
  const std::size_t end = line + family.size();
  if (line == std::string::npos || (end < ptx.size() && ptx[end] != ',' && ptx[end] != '\n'))
    return {};
  ptx.insert(end, 1, target.back());
  for (std::size_t at = 0; (at = ptx.find(kMarker, at)) != std::string::npos;)
    ptx.replace(at, kMarker.size(), kMarker.size(), ' ');
  for (std::size_t at = 0; (at = ptx.find(".reqntid", at)) != std::string::npos;) {
    at = std::min(ptx.find('\n', at), ptx.size());
    ptx.insert(at, kOneGroupFits);
  }
  return ptx;
}

bool wgmma_works(const std::shared_ptr<ClDevice>& device) {
  static std::mutex mutex;
  static std::map<cl_device_id, bool> answers;
  const std::lock_guard lock(mutex);
  const auto known = answers.find(device->id());
  if (known != answers.end()) return known->second;
  bool works = false;
  std::string why = "its product is wrong";
  try {
    works = multiplies_right(device);
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    why = error.what();
  }
  if (!works) {
    log(LogLevel::kWarning, "opencl: " + device->profile().name + " does without wgmma: " + why);
  }
  answers[device->id()] = works;
  return works;
}

}  // namespace tessera::device::opencl
