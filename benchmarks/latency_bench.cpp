// SPDX-License-Identifier: Apache-2.0
// What Tessera itself costs around a small call: the first call of a new process with warm caches,
// and what a repeated call adds to the bare launch of its plan.
//
//   build/tessera_benchmarks [--benchmark_filter=...]
//
// TESSERA_DEVICE names the device; unset = opencl.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/context_state.hpp"
#include "tessera/tessera.hpp"

namespace {

using namespace tessera;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kFirstCallFlag = "--first-call";
const Shape kSmall{1, 16, 2, 64};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double smallest(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

std::string device_selector() {
  const char* named = std::getenv("TESSERA_DEVICE");
  return named != nullptr && *named != '\0' ? named : "opencl";
}

Tensor ramp(const Context& context, const Shape& shape) {
  std::vector<float> values(
      static_cast<std::size_t>(TensorSpec::contiguous(DType::kF32, shape).elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) * 0.1F;
  return context.upload(values, shape);
}

// ---- the first call of a process -------------------------------------------------------------

// Seconds of the steps from nothing to the first result in host memory.
struct FirstCall {
  double open = 0, upload = 0, call = 0, download = 0;
  double total() const { return open + upload + call + download; }
};

// In the child: prints a FirstCall.
int make_first_call() {
  std::array<Clock::time_point, 5> at{Clock::now()};
  const Context context = Context::open(device_selector());
  at[1] = Clock::now();
  const Tensor tensor = ramp(context, kSmall);
  at[2] = Clock::now();
  const Tensor output = flash_attention(context, tensor, tensor, tensor);
  at[3] = Clock::now();
  const std::vector<float> values = context.download<float>(output);
  at[4] = Clock::now();
  for (std::size_t step = 1; step < at.size(); ++step)
    std::printf("%.9f ", std::chrono::duration<double>(at[step] - at[step - 1]).count());
  return values.empty() ? 1 : 0;
}

// The path of this program, for popen(): /proc/self/exe would be the shell's there.
std::string& program_path() {
  static std::string path;
  return path;
}

std::optional<FirstCall> first_call_of_new_process() {
  const std::string command = "'" + program_path() + "' " + std::string(kFirstCallFlag);
  std::FILE* child = popen(command.c_str(), "r");
  if (child == nullptr) return std::nullopt;
  FirstCall result;
  const int read = std::fscanf(child, "%lf %lf %lf %lf", &result.open, &result.upload, &result.call,
                               &result.download);
  return pclose(child) == 0 && read == 4 ? std::optional(result) : std::nullopt;
}

// One iteration is one process; the time is taken inside of it, from Context::open to the first
// result. The goal is 60 ms on PoCL.
void first_call(benchmark::State& state) {
  static_cast<void>(first_call_of_new_process());  // fills the caches
  std::vector<double> total, open, upload, call, download;
  for (auto _ : state) {
    const auto took = first_call_of_new_process();
    if (!took) {
      state.SkipWithError("the child process failed");
      break;
    }
    state.SetIterationTime(took->total());
    total.push_back(took->total());
    open.push_back(took->open);
    upload.push_back(took->upload);
    call.push_back(took->call);
    download.push_back(took->download);
  }
  if (total.empty()) return;
  state.counters["median_ms"] = median(total) * 1e3;
  state.counters["min_ms"] = smallest(total) * 1e3;
  state.counters["open_ms"] = median(open) * 1e3;
  state.counters["upload_ms"] = median(upload) * 1e3;
  state.counters["call_ms"] = median(call) * 1e3;
  state.counters["download_ms"] = median(download) * 1e3;
}
BENCHMARK(first_call)->UseManualTime()->Iterations(40)->Unit(benchmark::kMillisecond);

// ---- later calls -------------------------------------------------------------------------------

// The launch that a call comes down to, on buffers that exist already.
class BareLaunch {
 public:
  BareLaunch(const Context& context, const Tensor& tensor)
      : stream_(context.state()->default_stream()) {
    const Operation& operation = find_operation("flash_attention");
    std::vector<std::optional<TensorSpec>> specs(operation.operands.size());
    buffers_.resize(specs.size());
    for (const char* name : {"query", "key", "value"}) {
      specs[operation.slot(name)] = tensor.spec();
      buffers_[operation.slot(name)] = tensor.buffer();
    }
    plan_ = Executor(context).plan(make_problem(operation, specs, {}));
    output_ = context.empty(DType::kF32, plan_->problem.spec(operation.slot("output")).shape);
    buffers_[operation.slot("output")] = output_.buffer();
    memory_ = std::make_unique<runtime::WorkMemory>(context.state()->create_work_memory());
  }
  void operator()() const {
    stream_->use([&](device::Stream& stream) {
      runtime::launch(*plan_, stream, memory_->of(*plan_, buffers_));
      stream.flush();
    });
  }

 private:
  std::shared_ptr<runtime::StreamState> stream_;
  std::shared_ptr<const runtime::Plan> plan_;
  std::vector<device::BufferPtr> buffers_;
  Tensor output_;
  std::unique_ptr<runtime::WorkMemory> memory_;
};

// Times of one kind of work: until it returns, and until the device is done.
struct Times {
  std::vector<double> submitted, finished;

  template <class Work>
  void add(const Context& context, const Work& work) {
    const auto start = Clock::now();
    work();
    submitted.push_back(seconds_since(start));
    context.synchronize();
    finished.push_back(seconds_since(start));
  }
};

// A call and the bare launch of its plan take turns, so that both see the same machine. What the
// call adds is the difference of the medians; the goal is 15 us.
void later_calls(benchmark::State& state) {
  const Context context = Context::open(device_selector());
  const Tensor tensor = ramp(context, kSmall);
  const BareLaunch launch(context, tensor);
  // As in a program that uses its results: the one before is let go when the next is there.
  Tensor output;
  const auto call = [&] { output = flash_attention(context, tensor, tensor, tensor); };
  Times calls, launches, warm_up;
  for (int i = 0; i < 100; ++i) warm_up.add(context, call);
  for (auto _ : state) {
    calls.add(context, call);
    launches.add(context, launch);
    state.SetIterationTime(calls.submitted.back());
  }
  const auto report = [&](const std::string& name, const std::vector<double>& with,
                          const std::vector<double>& bare) {
    state.counters[name + "_call_us"] = median(with) * 1e6;
    state.counters[name + "_launch_us"] = median(bare) * 1e6;
    state.counters[name + "_added_us"] = (median(with) - median(bare)) * 1e6;
    state.counters[name + "_min_added_us"] = (smallest(with) - smallest(bare)) * 1e6;
  };
  report("submit", calls.submitted, launches.submitted);
  report("finish", calls.finished, launches.finished);
}
BENCHMARK(later_calls)->UseManualTime()->Iterations(20000)->Unit(benchmark::kMicrosecond);

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == kFirstCallFlag) return make_first_call();
  program_path() = argv[0];
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
