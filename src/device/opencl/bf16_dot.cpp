// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/bf16_dot.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

#include "base/system/log.hpp"

namespace tessera::device::opencl {

#if defined(__x86_64__) && defined(__GNUC__)
namespace {

constexpr int kTurns = 200;  // of a loop: about 1 us
constexpr int kRounds = 32;  // of which the shortest counts: other work only makes them longer
// Of the time of as many multiply-adds. Half of the work of a dot product is 1 (a quarter, of i8);
// 2 is no gain. The two are far enough apart for the answer to be the same every time.
constexpr double kMostTime = 1.5;

// Zeros in twelve registers that do not wait for each other.
#define TESSERA_TURNS(instruction, turns)                                                     \
  __asm__ volatile(                                                                           \
      "vpxord %%zmm0, %%zmm0, %%zmm0\n"                                                       \
      ".irp n, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"                                    \
      "vmovaps %%zmm0, %%zmm\\n\n"                                                            \
      ".endr\n"                                                                               \
      "1:\n"                                                                                  \
      ".irp n, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n" instruction                        \
      " %%zmm0, %%zmm0, %%zmm\\n\n"                                                           \
      ".endr\n"                                                                               \
      "dec %0\n"                                                                              \
      "jnz 1b\n"                                                                              \
      "vzeroupper\n"                                                                          \
      : "+r"(turns)                                                                           \
      :                                                                                       \
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
        "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

void multiply_add() {
  int turns = kTurns;
  TESSERA_TURNS("vfmadd231ps", turns);
}

void bf16_dot() {
  int turns = kTurns;
  TESSERA_TURNS("vdpbf16ps", turns);
}

template <class Work>
double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void i8_dot() {
  int turns = kTurns;
  TESSERA_TURNS("vpdpbusd", turns);
}

// `name` for the log.
bool pays(const char* name, void (*dot)()) {
  double of_dot = std::numeric_limits<double>::infinity(), of_multiply_add = of_dot;
  for (int round = 0; round < kRounds; ++round) {
    of_multiply_add = std::min(of_multiply_add, seconds(multiply_add));
    of_dot = std::min(of_dot, seconds(dot));
  }
  const bool pays = of_dot <= kMostTime * of_multiply_add;
  if (!pays)
    log(LogLevel::kInfo,
        std::string("this CPU's ") + name + " is no faster than float multiply-adds: not used");
  return pays;
}

}  // namespace

bool bf16_dot_pays() {
  static const bool faster =
      __builtin_cpu_supports("avx512bf16") != 0 && pays("AVX512_BF16", bf16_dot);
  return faster;
}

bool i8_dot_pays() {
  static const bool faster =
      __builtin_cpu_supports("avx512vnni") != 0 && pays("AVX512_VNNI", i8_dot);
  return faster;
}
#else
bool bf16_dot_pays() { return false; }
bool i8_dot_pays() { return false; }
#endif

}  // namespace tessera::device::opencl
