// SPDX-License-Identifier: Apache-2.0
// The judge: what each limit of a device, each requirement and each value of a configuration makes
// it say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <sstream>
#include <stdexcept>
#include <string>

#include "kernel/embedded.hpp"
#include "selection/selector.hpp"
#include "support/fake_operation.hpp"
#include "support/profiles.hpp"

namespace tessera {
namespace {

using testing::fake_operation;
using testing::fake_problem;
using ::testing::HasSubstr;
using testing::load_profile;

const Variant& variant(const char* name) { return *fake_operation().find_variant(name); }

std::string said(const Problem& problem, const Variant& variant, const Config& config,
                 const DeviceProfile& profile) {
  return selection::refusal(problem, variant, config, profile).value_or("");
}

TEST(Profiles, AreOfManyMachines) {
  const auto names = testing::profile_names();
  EXPECT_THAT(names, ::testing::IsSupersetOf({"arc_vulkan", "h200_opencl", "h200_vulkan",
                                              "lavapipe", "pocl_cpu", "rdna3_vulkan"}));
  for (const std::string& name : names) {
    const DeviceProfile profile = load_profile(name);
    EXPECT_FALSE(profile.name.empty()) << name;
    EXPECT_GE(profile.max_group_size, 256U) << name;
    EXPECT_GE(profile.local_memory, 32768U) << name;
    EXPECT_LE(profile.max_binding, std::uint64_t{1} << 36) << name;
    EXPECT_EQ(profile.backend == Backend::kVulkan, profile.max_push_constants != 0) << name;
  }
}

struct HeuristicRow {
  const char* profile;
  std::int64_t n;
  const char* variant;
  const char* config;
  const char* why;
};

// What is chosen on machines that nobody here owns, without any cache.
TEST(Profiles, HeuristicsOnEach) {
  const HeuristicRow rows[] = {
      {"h200_vulkan", 4096, "blocked", "BLOCK=64,WG_X=64", "a GPU: the first rule"},
      {"rdna3_vulkan", 4096, "blocked", "BLOCK=64,WG_X=64", "a GPU: the first rule"},
      {"arc_vulkan", 4096, "blocked", "BLOCK=64,WG_X=64", "a GPU: the first rule"},
      {"h200_opencl", 4096, "plain", "UNROLL=4,WG_X=256", "OpenCL there offers no sub-groups"},
      {"h200_vulkan", 96, "blocked", "BLOCK=32,WG_X=32", "64 does not divide 96, but 32 does"},
      {"h200_vulkan", 100, "plain", "UNROLL=4,WG_X=256", "no block divides 100"},
      {"pocl_cpu", 4096, "plain", "UNROLL=4,WG_X=1", "a CPU: the second rule"},
      {"lavapipe", 4096, "plain", "UNROLL=4,WG_X=1", "a CPU, though it has sub-groups"},
  };
  for (const HeuristicRow& row : rows) {
    const DeviceProfile profile = load_profile(row.profile);
    const Problem problem = fake_problem(row.n);
    selection::Selector selector({}, {});
    const Choice choice = selector.choose({.problem = &problem, .profile = &profile});
    EXPECT_EQ(choice.variant, row.variant) << row.profile << ": " << row.why;
    EXPECT_EQ(choice.config.to_string(), row.config) << row.profile << ": " << row.why;
    EXPECT_EQ(choice.tier, Tier::kHeuristics);
  }
}

struct RefusalRow {
  const char* profile;
  std::int64_t n;
  DType dtype;
  const char* variant;
  Config config;
  const char* sentence;  // "" = accepted
};

TEST(RefusalTable, Sentences) {
  const RefusalRow rows[] = {
      {"h200_vulkan", 4096, DType::kF32, "blocked", {{"BLOCK", 64}, {"WG_X", 64}}, ""},
      {"h200_opencl", 4096, DType::kF32, "blocked", {{"BLOCK", 64}}, "needs subgroups"},
      {"h200_vulkan", 4096, DType::kF32, "reference", {}, "runs through host only"},
      {"h200_vulkan", 4096, DType::kBF16, "blocked", {{"BLOCK", 64}}, "takes f32, f16, not bf16"},
      {"h200_vulkan",
       4096,
       DType::kF32,
       "blocked",
       {{"BLOCK", 64}, {"TILE", 2}},
       "no tunable 'TILE'"},
      {"h200_vulkan",
       4096,
       DType::kF32,
       "blocked",
       {{"BLOCK", 64}, {"LENGTH", 2}},
       "no tunable 'LENGTH'"},  // a constant comes from the problem
      {"h200_vulkan", 4096, DType::kF32, "blocked", {{"BLOCK", 0}}, "has 0 for BLOCK"},
      {"h200_vulkan", 4096, DType::kF32, "blocked", {{"BLOCK", 64}, {"WG_Y", 0}}, "has 0 for WG_Y"},
      {"h200_vulkan", 4096, DType::kF32, "blocked", {{"WG_X", 64}}, ""},  // BLOCK falls back
      {"h200_vulkan", 4096, DType::kF32, "blocked", {{"BLOCK", 4294967295U}}, "more than 1048576"},
      {"h200_vulkan", 100, DType::kF32, "blocked", {{"BLOCK", 64}}, "length that BLOCK divides"},
      {"h200_vulkan", 4096, DType::kF32, "plain", {{"WG_X", 1024}}, ""},
      {"h200_vulkan", 4096, DType::kF32, "plain", {{"WG_X", 2048}}, "2048 work-items"},
      {"pocl_cpu", 4096, DType::kF32, "plain", {{"WG_X", 2048}}, ""},
      {"h200_vulkan", 4096, DType::kF32, "plain", {{"WG_X", 1024}, {"WG_Y", 2}}, "2048 work-items"},
      // 2^20 * 2^20 * 2^20 does not fit into 32 bits.
      {"h200_vulkan",
       4096,
       DType::kF32,
       "plain",
       {{"WG_X", 1048576}, {"WG_Y", 1048576}, {"WG_Z", 1048576}},
       "device takes 1024"},
      {"h200_vulkan",
       4096,
       DType::kF32,
       "blocked",
       {{"BLOCK", 128}},
       "65536 bytes of work-group memory"},
      {"rdna3_vulkan", 4096, DType::kF32, "blocked", {{"BLOCK", 128}}, ""},
      {"lavapipe", 4096, DType::kF32, "blocked", {{"BLOCK", 64}}, ""},
      {"lavapipe", 4096, DType::kF32, "blocked", {{"BLOCK", 128}}, "device has 32768"},
      {"arc_vulkan", 65536, DType::kF32, "plain", {{"WG_X", 1}}, "65536 work-groups along axis 0"},
      {"arc_vulkan", 65535, DType::kF32, "plain", {{"WG_X", 1}}, ""},
      {"h200_vulkan", 65536, DType::kF32, "plain", {{"WG_X", 1}}, ""},
      // 128 MiB is what one binding reaches on lavapipe.
      {"lavapipe", 33554432, DType::kF32, "plain", {{"WG_X", 1024}}, ""},
      {"lavapipe",
       33554433,
       DType::kF16,
       "plain",
       {{"WG_X", 1024}},
       "needs 134217732 bytes of scratch in one buffer, and the device has 134217728"},
      {"lavapipe",
       33554433,
       DType::kF32,
       "plain",
       {{"WG_X", 1024}},
       "needs 134217732 bytes of x in one buffer, and the device has 134217728"},
  };
  for (const RefusalRow& row : rows) {
    const Problem problem = fake_problem(row.n, row.dtype);
    const std::string sentence =
        said(problem, variant(row.variant), row.config, load_profile(row.profile));
    if (*row.sentence == '\0') {
      EXPECT_EQ(sentence, "") << row.profile << " " << row.variant << "{" << row.config.to_string()
                              << "}";
    } else {
      EXPECT_THAT(sentence, HasSubstr(row.sentence)) << row.profile << " " << row.variant;
    }
  }
}

TEST(RefusalOfRequirements, KindAndVendor) {
  const Problem problem = fake_problem(64);
  Variant only_amd = variant("plain");
  only_amd.needs.vendor_id = 4098;
  EXPECT_THAT(said(problem, only_amd, {}, load_profile("h200_vulkan")),
              HasSubstr("vendor id 4098"));
  EXPECT_EQ(said(problem, only_amd, {}, load_profile("rdna3_vulkan")), "");
  Variant only_cpu = variant("plain");
  only_cpu.needs.kinds = {DeviceKind::kCpu};
  EXPECT_THAT(said(problem, only_cpu, {}, load_profile("h200_vulkan")), HasSubstr("of kind cpu"));
  EXPECT_EQ(said(problem, only_cpu, {}, load_profile("pocl_cpu")), "");
}

TEST(RefusalOfSources, EveryPassNeedsOne) {
  const Problem problem = fake_problem(64);
  Variant half = variant("plain");
  half.passes.push_back(half.passes.front());
  half.passes.back().name = "combine";
  half.passes.back().vulkan = {};
  EXPECT_EQ(said(problem, half, {}, load_profile("pocl_cpu")), "");
  EXPECT_THAT(said(problem, half, {}, load_profile("lavapipe")),
              HasSubstr("no Vulkan kernel for its pass 'combine'"));
  half.passes.back().opencl = {};
  EXPECT_THAT(said(problem, half, {}, load_profile("pocl_cpu")), HasSubstr("no OpenCL kernel"));
  DeviceProfile host;
  EXPECT_THAT(said(problem, variant("plain"), {}, host), HasSubstr("no host kernel"));
  EXPECT_EQ(said(problem, variant("reference"), {}, host), "");
}

TEST(RefusalOfSources, EmbeddedModuleMustExist) {
  const Problem problem = fake_problem(64);
  Variant embedded = variant("plain");
  embedded.passes.front().vulkan = {.file = "attention/no_such_shader.comp"};
  embedded.passes.front().axes = [](const Problem&, const DeviceProfile&) {
    return std::vector<Define>{{"SUBGROUP", 1}, {"DTYPE", 0}};
  };
  const std::string sentence = said(problem, embedded, {}, load_profile("lavapipe"));
  EXPECT_THAT(sentence, HasSubstr("attention/no_such_shader.comp[DTYPE=0,SUBGROUP=1]"));
  // On OpenCL the same record has its text.
  EXPECT_EQ(said(problem, embedded, {}, load_profile("pocl_cpu")), "");
  for (const kernel::EmbeddedModule& module : kernel::embedded_modules()) {
    if (module.name.find('[') != std::string_view::npos) continue;
    embedded.passes.front().vulkan.file = std::string(module.name);
    embedded.passes.front().axes = nullptr;
    EXPECT_EQ(said(problem, embedded, {}, load_profile("lavapipe")), "") << module.name;
  }
}

TEST(RefusalOfSources, SkippedModuleSaysWhy) {
  const Problem problem = fake_problem(64);
  for (const kernel::SkippedModule& skipped : kernel::skipped_modules()) {
    Variant embedded = variant("plain");
    const std::size_t bracket = skipped.name.find('[');
    std::vector<Define> axes;
    std::istringstream words(
        std::string(bracket == std::string_view::npos ? "" : skipped.name.substr(bracket + 1)));
    for (std::string name, value;
         std::getline(words, name, '=') && std::getline(words, value, ',');)
      axes.push_back({name, static_cast<std::uint32_t>(std::stoul(value))});
    embedded.passes.front().vulkan = {.file = std::string(skipped.name.substr(0, bracket))};
    embedded.passes.front().axes = [axes](const Problem&, const DeviceProfile&) { return axes; };
    EXPECT_THAT(said(problem, embedded, {}, load_profile("lavapipe")),
                HasSubstr(std::string(skipped.why)));
  }
}

// Geometry functions may divide by what rejects() rules out, so they must not be asked before.
TEST(RefusalOrder, RejectsStandsBeforeGeometry) {
  const Problem problem = fake_problem(64);
  bool asked = false;
  Variant careful = variant("plain");
  careful.rejects = [](const Problem&, const Config&, const DeviceProfile&) -> Refusal {
    return "no";
  };
  careful.passes.front().groups = [&](const Problem&, const Config&) {
    asked = true;
    return Dim3{};
  };
  EXPECT_EQ(said(problem, careful, {}, load_profile("pocl_cpu")), "no");
  EXPECT_FALSE(asked);
}

TEST(RefusalOrder, AThrowingRecordIsARefusal) {
  const Problem problem = fake_problem(64);
  const DeviceProfile profile = load_profile("pocl_cpu");
  Variant throwing = variant("plain");
  throwing.rejects = [](const Problem&, const Config&, const DeviceProfile&) -> Refusal {
    throw std::runtime_error("oh");
  };
  EXPECT_THAT(said(problem, throwing, {}, profile), HasSubstr("oh"));
  throwing.rejects = [](const Problem&, const Config&, const DeviceProfile&) -> Refusal {
    throw 1;
  };
  EXPECT_THAT(said(problem, throwing, {}, profile), HasSubstr("threw"));
  throwing.space = [](const Problem&, const DeviceProfile&) -> std::vector<Config> {
    throw std::runtime_error("space");
  };
  EXPECT_THAT(selection::refusal(problem, throwing, profile).value_or(""), HasSubstr("space"));
  EXPECT_EQ(selection::first_fitting(problem, throwing, profile), std::nullopt);
}

TEST(RefusalOrder, WorkGroupSizeOfThePass) {
  const Problem problem = fake_problem(64);
  Variant own = variant("plain");
  own.passes.front().group_size = [](const Config& config) {
    return Dim3{.x = config.get("WG_X", 1) * 64};
  };
  EXPECT_EQ(said(problem, own, {{"WG_X", 16}}, load_profile("lavapipe")), "");
  EXPECT_THAT(said(problem, own, {{"WG_X", 17}}, load_profile("lavapipe")),
              HasSubstr("1088 work-items"));
}

// A tunable that falls back to 0 is a switch; 0 elsewhere is a mistake.
TEST(RefusalOfValues, SwitchesMayBeOff) {
  const Problem problem = fake_problem(64);
  const DeviceProfile profile = load_profile("pocl_cpu");
  Variant with_switch = variant("plain");
  with_switch.tunables.push_back({.id = 4, .name = "FUSED", .fallback = 0, .is_constant = false});
  EXPECT_EQ(selection::complete(with_switch, {}).to_string(), "FUSED=0,UNROLL=4");
  EXPECT_EQ(said(problem, with_switch, {}, profile), "");
  EXPECT_EQ(said(problem, with_switch, {{"FUSED", 0}}, profile), "");
  EXPECT_EQ(said(problem, with_switch, {{"FUSED", 1}}, profile), "");
  EXPECT_EQ(said(problem, with_switch, {{"UNROLL", 0}}, profile), "has 0 for UNROLL");
}

// 256 registers of a thread are a matter of the build, whatever the kernel; Vulkan takes no wish.
TEST(RefusalOfValues, LargeRegistersAreOfIntelsOpenCl) {
  const Problem problem = fake_problem(64);
  const DeviceProfile arc = load_profile("dg2_opencl");
  DeviceProfile older = arc;
  older.compiler = "OpenCL 3.0 ip_12.0";
  const char* const nothing_else = "Intel's OpenCL gives on Xe-HP and later";
  const Config config{{"LARGE_GRF", 1}, {"WG_X", 64}};
  EXPECT_EQ(said(problem, variant("plain"), config, arc), "");
  EXPECT_THAT(said(problem, variant("plain"), config, older), HasSubstr(nothing_else));
  for (const char* other : {"dg2_vulkan", "h200_opencl", "gfx1100_opencl", "pocl_cpu"})
    EXPECT_THAT(said(problem, variant("plain"), config, load_profile(other)),
                HasSubstr(nothing_else));
  EXPECT_EQ(said(problem, variant("plain"), {{"LARGE_GRF", 0}}, load_profile("pocl_cpu")), "");
  EXPECT_THAT(said(problem, variant("plain"), {{"LARGE_GRF", 2}}, arc), HasSubstr("0 or 1"));
}

TEST(RefusalOfTheWholeSpace, SaysHowManyWereTried) {
  const Problem problem = fake_problem(100);
  const auto no = selection::refusal(problem, variant("blocked"), load_profile("h200_vulkan"));
  ASSERT_TRUE(no);
  EXPECT_THAT(*no, HasSubstr("fits with none of its 3 configurations; {BLOCK="));
  EXPECT_EQ(selection::refusal(fake_problem(64), variant("blocked"), load_profile("h200_vulkan")),
            std::nullopt);
}

// Callers put the variant's name or "it" before them.
TEST(Refusals, OfEveryVariantCompleteASentence) {
  for (const Operation* operation : all_operations()) {
    if (!operation->workload.benchmarks) continue;
    const StorageTypes types =
        operation->types.empty() ? StorageTypes(DType::kF32) : operation->types.front();
    const Case shape = operation->workload.benchmarks(types).front();
    const Problem problem = make_problem(*operation, shape.operands, shape.options);
    for (const Variant& each : operation->variants) {
      for (const std::uint32_t value : {0U, 7U, 100U, 1U << 20}) {
        Config config{{"WG_X", value == 0 ? 1U : value}};
        for (const Tunable& tunable : each.tunables) {
          if (!tunable.is_constant) config.set(tunable.name, value);
        }
        for (const char* device : {"pocl_cpu", "h200_opencl", "lavapipe"}) {
          const std::string no = said(problem, each, config, load_profile(device));
          if (no.empty()) continue;
          EXPECT_TRUE(std::islower(static_cast<unsigned char>(no.front()))) << no;
          for (const char* start : {"its ", "it ", "none ", "the "})
            EXPECT_FALSE(no.starts_with(start)) << each.name << ' ' << no;
        }
      }
    }
  }
}

TEST(CandidateList, RulesFirstThenRecordsWithoutRepeats) {
  const Problem problem = fake_problem(4096);
  std::vector<std::string> names;
  for (const auto& candidate : selection::candidates(problem, load_profile("h200_vulkan"))) {
    names.push_back(candidate.variant->name + "{" + candidate.config.to_string() + "}");
  }
  // BLOCK=128 does not fit into the local memory; the rule's BLOCK=64 is not listed twice.
  EXPECT_THAT(names, ::testing::ElementsAre("blocked{BLOCK=64,WG_X=64}",
                                            "blocked{BLOCK=32,WG_X=32}", "plain{UNROLL=4,WG_X=256}",
                                            "plain{UNROLL=4,WG_X=64}", "plain{UNROLL=4,WG_X=1}"));
}

// What is tuned on an Arc: each configuration with 128 registers of a thread, then with 256.
TEST(CandidateList, BothKindsOfRegistersWhereThereAreTwo) {
  const Problem problem = fake_problem(4096);
  std::vector<std::string> names;
  for (const auto& candidate : selection::candidates(problem, load_profile("dg2_opencl"))) {
    if (candidate.variant->name == "plain") names.push_back(candidate.config.to_string());
  }
  EXPECT_THAT(
      names, ::testing::ElementsAre("UNROLL=4,WG_X=256", "UNROLL=4,WG_X=64", "UNROLL=4,WG_X=1",
                                    "LARGE_GRF=1,UNROLL=4,WG_X=256", "LARGE_GRF=1,UNROLL=4,WG_X=64",
                                    "LARGE_GRF=1,UNROLL=4,WG_X=1"));
}

TEST(CompleteConfig, FillsFallbacksOnly) {
  EXPECT_EQ(selection::complete(variant("plain"), {{"WG_X", 2}}).to_string(), "UNROLL=4,WG_X=2");
  EXPECT_EQ(selection::complete(variant("plain"), {{"UNROLL", 8}}).to_string(), "UNROLL=8");
  EXPECT_EQ(selection::complete(variant("blocked"), {}).to_string(), "BLOCK=32")
      << "LENGTH is a constant";
}

}  // namespace
}  // namespace tessera
