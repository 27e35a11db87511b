// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/spirv.hpp"

#include <algorithm>
#include <cstddef>

namespace tessera::device::vulkan {
namespace {

// From the SPIR-V specification.
constexpr std::uint32_t kMagic = 0x07230203;
constexpr std::size_t kHeaderWords = 5;
constexpr std::uint32_t kOpEntryPoint = 15;
constexpr std::uint32_t kOpCapability = 17;
constexpr std::uint32_t kOpFunction = 54;
constexpr std::uint32_t kOpFunctionEnd = 56;
constexpr std::uint32_t kComputeModel = 5;

struct Capability {
  std::uint32_t id;
  Feature feature;  // kNone = nothing that Tessera enables
  const char* name;
};
constexpr Capability kCapabilities[] = {
    {9, Feature::kFp16Arithmetic, "Float16"},
    {10, Feature::kFp64, "Float64"},
    {11, Feature::kNone, "Int64"},
    {22, Feature::kNone, "Int16"},
    {39, Feature::kNone, "Int8"},
    {63, Feature::kSubgroupArithmetic, "GroupNonUniformArithmetic"},
    {65, Feature::kSubgroupArithmetic, "GroupNonUniformShuffle"},
    {4433, Feature::kStorage16, "StorageBuffer16BitAccess"},
    {4434, Feature::kNone, "UniformAndStorageBuffer16BitAccess"},
    {4435, Feature::kNone, "StoragePushConstant16"},
    {4448, Feature::kNone, "StorageBuffer8BitAccess"},
    {5116, Feature::kBf16Matrix, "BFloat16TypeKHR"},
    {5118, Feature::kBf16Matrix, "BFloat16CooperativeMatrixKHR"},
    {5347, Feature::kNone, "PhysicalStorageBufferAddresses"},
    {5357, Feature::kNone, "CooperativeMatrixNV"},
    {5430, Feature::kMatrixRegisters, "CooperativeMatrixReductionsNV"},
    {5431, Feature::kMatrixRegisters, "CooperativeMatrixConversionsNV"},
    {5432, Feature::kMatrixRegisters, "CooperativeMatrixPerElementOperationsNV"},
    {6018, Feature::kIntegerDot, "DotProductInput4x8BitPacked"},
    {6019, Feature::kIntegerDot, "DotProduct"},
    {6022, Feature::kCooperativeMatrix, "CooperativeMatrixKHR"},
};
// In the order of VkSubgroupFeatureFlagBits.
constexpr std::uint32_t kFirstSubgroupCapability = 61;  // GroupNonUniform
constexpr std::uint32_t kLastSubgroupCapability = 68;   // GroupNonUniformQuad

// Whether words hold `text` as a literal: four characters to a word, the first lowest, then a zero.
bool literal_is(std::span<const std::uint32_t> words, std::string_view text) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i / 4 >= words.size()) return false;
    const std::uint32_t wanted = i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
    if ((words[i / 4] >> (8 * (i % 4)) & 0xff) != wanted) return false;
  }
  return true;
}

void add_capability(ModuleFacts& facts, std::uint32_t id) {
  if (id >= kFirstSubgroupCapability && id <= kLastSubgroupCapability) {
    facts.subgroup_operations |= 1U << (id - kFirstSubgroupCapability);
  }
  const auto* known = std::ranges::find(kCapabilities, id, &Capability::id);
  if (known == std::end(kCapabilities)) return;
  facts.needs = facts.needs | known->feature;
  if (known->feature == Feature::kNone) facts.unsupported = known->name;
}

}  // namespace

ModuleFacts examine_module(std::span<const std::uint32_t> words, std::string_view entry) {
  ModuleFacts facts;
  if (words.size() < kHeaderWords || words[0] != kMagic) {
    facts.fault = "this is not SPIR-V of this machine's byte order";
    return facts;
  }
  facts.version = words[1];
  bool found = false;
  int open_functions = 0;
  for (std::size_t at = kHeaderWords; at < words.size();) {
    const std::uint32_t code = words[at] & 0xffff;
    const std::size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) {
      facts.fault = "the SPIR-V is cut off or damaged at word " + std::to_string(at);
      return facts;
    }
    const auto operands = words.subspan(at + 1, length - 1);
    if (code == kOpCapability && !operands.empty()) add_capability(facts, operands[0]);
    if (code == kOpEntryPoint && operands.size() > 2 && operands[0] == kComputeModel) {
      found = found || literal_is(operands.subspan(2), entry);
    }
    if (code == kOpFunction) ++open_functions;
    if (code == kOpFunctionEnd) --open_functions;
    at += length;
  }
  if (open_functions != 0) {
    facts.fault = "the SPIR-V is cut off or damaged in a function";
    return facts;
  }
  if (!found) facts.fault = "the SPIR-V has no compute entry point '" + std::string(entry) + "'";
  return facts;
}

}  // namespace tessera::device::vulkan
