// SPDX-License-Identifier: Apache-2.0
// Registers an operation, RMS normalisation, and runs it on every device. From its record Tessera
// checks the calls, chooses and caches configurations, and compares every candidate with
// `reference` before it times it.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tessera/tessera.hpp>
#include <vector>

namespace ts = tessera;

namespace {

enum Slot : std::size_t { kInput, kWeight, kOutput };

// As the kernels declare it: scalars of 4 bytes.
struct Args {
  std::uint32_t features, x_offset, w_offset, y_offset;
  float epsilon;
};

std::string read_file(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

void validate(ts::Problem& problem) {
  const ts::TensorSpec& input = problem.spec(kInput);
  const ts::TensorSpec& weight = problem.spec(kWeight);
  if (input.shape.size() != 2 || !input.is_contiguous()) {
    throw ts::InvalidArgument("my_rms_norm: input " + input.to_string() +
                              " must be contiguous [rows, features]");
  }
  if (weight.shape != ts::Shape{input.shape[1]}) {
    throw ts::InvalidArgument("my_rms_norm: weight " + weight.to_string() +
                              " must have the features of input " + input.to_string());
  }
  problem.infer_output(kOutput, input.dtype, input.shape);
  problem.dtype = input.dtype;
  // What a configuration is remembered for.
  problem.key = "features=" + std::to_string(input.shape[1]);
}

// The definition, in double precision.
void reference(const ts::Problem& problem, std::span<ts::HostTensor> tensors) {
  const std::vector<double> x = tensors[kInput].read();
  const std::vector<double> w = tensors[kWeight].read();
  const double epsilon = std::get<double>(problem.option("epsilon"));
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size(); row += w.size()) {
    double sum = 0;
    for (std::size_t i = 0; i < w.size(); ++i) sum += x[row + i] * x[row + i];
    const double scale = 1 / std::sqrt(sum / static_cast<double>(w.size()) + epsilon);
    for (std::size_t i = 0; i < w.size(); ++i) y[row + i] = x[row + i] * scale * w[i];
  }
  tensors[kOutput].write(y);
}

ts::Variant row_variant() {
  ts::Pass pass;
  pass.name = "row";
  pass.opencl = {.text = read_file(KERNEL_FOLDER "/rms_norm.cl"), .entry = "rms_norm"};
#ifdef HAVE_SPIRV
  pass.vulkan.spirv = {
#include "rms_norm.spv.inc"
  };
#else
  pass.vulkan.text = read_file(KERNEL_FOLDER "/rms_norm.comp");
#endif
  pass.bindings = {kInput, kWeight, kOutput};
  pass.groups = [](const ts::Problem& problem, const ts::Config&) {
    return ts::Dim3{static_cast<std::uint32_t>(problem.spec(kInput).shape[0])};
  };
  pass.args = [](const ts::Problem& problem, const ts::Config&) {
    return ts::argument_bytes(
        Args{.features = static_cast<std::uint32_t>(problem.spec(kInput).shape[1]),
             .x_offset = static_cast<std::uint32_t>(problem.spec(kInput).offset),
             .w_offset = static_cast<std::uint32_t>(problem.spec(kWeight).offset),
             .y_offset = static_cast<std::uint32_t>(problem.spec(kOutput).offset),
             .epsilon = static_cast<float>(std::get<double>(problem.option("epsilon")))});
  };

  ts::Variant variant;
  variant.name = "row";
  variant.idea = "one work-group per row; a tree of sums in local memory";
  variant.dtypes = {ts::DType::kF32};
  variant.passes = {std::move(pass)};
  variant.space = [](const ts::Problem&, const ts::DeviceProfile&) {
    return std::vector<ts::Config>{
        {{"WG_X", 64}}, {{"WG_X", 128}}, {{"WG_X", 256}}, {{"WG_X", 16}}};
  };
  variant.local_bytes = [](const ts::Problem&, const ts::Config& config) {
    return std::uint64_t{sizeof(float)} * config.at("WG_X");
  };
  variant.rejects = [](const ts::Problem& problem, const ts::Config& config,
                       const ts::DeviceProfile& device) -> ts::Refusal {
    const std::uint32_t items = config.get("WG_X", 1);
    if ((items & (items - 1)) != 0)
      return "WG_X=" + std::to_string(items) + " is not a power of two";
    if (problem.spec(kInput).shape[0] > device.max_groups[0])
      return "more rows than the device has work-groups";
    return std::nullopt;
  };
  return variant;
}

ts::Operation rms_norm() {
  ts::Operation operation;
  operation.name = "my_rms_norm";
  operation.summary = "Root mean square normalisation of the last axis";
  operation.formula = "y[r,i] = x[r,i] * w[i] / sqrt(mean_i x[r,i]^2 + epsilon)";
  operation.operands = {{.name = "input",
                         .role = ts::Role::kInput,
                         .shape = "[rows, features]",
                         .dtypes = {ts::DType::kF32},
                         .doc = "x"},
                        {.name = "weight",
                         .role = ts::Role::kInput,
                         .shape = "[features]",
                         .dtypes = {ts::DType::kF32},
                         .doc = "w"},
                        {.name = "output",
                         .role = ts::Role::kOutput,
                         .shape = "[rows, features]",
                         .dtypes = {ts::DType::kF32},
                         .doc = "y"}};
  operation.options = {
      {.name = "epsilon", .fallback = 1e-6, .type = "float", .doc = "keeps the root from zero"}};
  operation.validate = validate;
  operation.reference = reference;
  operation.variants = {row_variant()};
  operation.rules = {{.why = "the only kernel there is",
                      .when = [](const ts::Problem&, const ts::DeviceProfile&) { return true; },
                      .variant = "row",
                      .config =
                          [](const ts::Problem&, const ts::DeviceProfile&) {
                            return ts::Config{{"WG_X", 64}};
                          }}};
  return operation;
}

// The worst error of one call on one device.
double run_on(const ts::DeviceInfo& info) {
  constexpr std::size_t kRows = 100, kFeatures = 1000;
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(kRows * kFeatures), w(kFeatures);
  for (float& value : x) value = normal(engine);
  for (float& value : w) value = normal(engine);

  const ts::Context context = ts::Context::open(std::to_string(info.index));
  const ts::Tensors outputs =
      ts::Executor(context).run("my_rms_norm",
                                {{"input", context.upload(x, {kRows, kFeatures})},
                                 {"weight", context.upload(w, {kFeatures})}},
                                {{"epsilon", 1e-5}});
  const std::vector<float> y = context.download<float>(outputs.at("output"));
  std::printf("%s\n", context.last_execution().name.c_str());

  double worst = 0;
  for (std::size_t row = 0; row < x.size(); row += kFeatures) {
    double sum = 0;
    for (std::size_t i = 0; i < kFeatures; ++i) sum += double{x[row + i]} * x[row + i];
    const double scale = 1 / std::sqrt(sum / kFeatures + 1e-5);
    for (std::size_t i = 0; i < kFeatures; ++i) {
      worst = std::fmax(worst, std::fabs(y[row + i] - x[row + i] * scale * w[i]));
    }
  }
  return worst;
}

}  // namespace

int main() {
  try {
    ts::register_operation(rms_norm());
    bool right = true;
    for (const ts::DeviceInfo& info : ts::probe_devices().devices) {
      const double error = run_on(info);
      std::printf("  largest error %.2e\n", error);
      right = right && error < 1e-5;
    }
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
