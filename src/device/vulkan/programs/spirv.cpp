// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/programs/spirv.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>

#include "device/vulkan/programs/spirv_codes.hpp"

namespace tessera::device::vulkan {
namespace {

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
    if (code == kOpVariable && operands.size() > 2 && operands[2] == kPushConstantClass)
      facts.takes_push_constants = true;
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

namespace {

std::uint32_t head(std::uint32_t code, std::uint32_t length) { return length << 16 | code; }

// What with_group_counts() has to know of a module.
class GroupCounts {
 public:
  explicit GroupCounts(std::span<const std::uint32_t> words) : words_(words) {
    for (std::size_t at = kHeaderWords; at < words.size(); at += words[at] >> 16)
      note(words[at] & 0xffff, words.subspan(at + 1, (words[at] >> 16) - 1));
  }

  // Loads become copies of constants, which stand before the first function; the variable stays.
  std::vector<std::uint32_t> replaced_by(const Dim3& counts) const {
    std::vector<std::uint32_t> result(words_.begin(), words_.begin() + kHeaderWords);
    if (variable_ == 0 || uint_ == 0 || vector_ == 0) return {words_.begin(), words_.end()};
    const std::uint32_t first = words_[3];  // the bound of ids
    result[3] = first + 4;
    bool declared = false;
    for (std::size_t at = kHeaderWords; at < words_.size(); at += words_[at] >> 16) {
      const std::uint32_t code = words_[at] & 0xffff;
      const auto instruction = words_.subspan(at, words_[at] >> 16);
      if (code == kOpFunction && !declared) {
        declared = true;
        const std::array values{counts.x, counts.y, counts.z};
        for (std::uint32_t axis = 0; axis < values.size(); ++axis) {
          const std::array words{head(kOpConstant, 4), uint_, first + axis, values[axis]};
          result.insert(result.end(), words.begin(), words.end());
        }
        const std::array words{
            head(kOpConstantComposite, 6), vector_, first + 3, first, first + 1, first + 2};
        result.insert(result.end(), words.begin(), words.end());
      }
      const auto constant = code == kOpLoad ? constant_of(instruction[3]) : std::nullopt;
      if (constant) {
        const std::array words{head(kOpCopyObject, 4), instruction[1], instruction[2],
                               first + *constant};
        result.insert(result.end(), words.begin(), words.end());
      } else {
        result.insert(result.end(), instruction.begin(), instruction.end());
      }
    }
    return result;
  }

 private:
  void note(std::uint32_t code, std::span<const std::uint32_t> operands) {
    if (code == kOpDecorate && operands.size() == 3 && operands[1] == kBuiltIn &&
        operands[2] == kNumWorkgroups) {
      variable_ = operands[0];
    } else if (code == kOpTypeInt && operands[1] == 32 && operands[2] == 0) {
      uint_ = operands[0];
    } else if (code == kOpTypeVector && operands[1] == uint_ && operands[2] == 3) {
      vector_ = operands[0];
    } else if (code == kOpConstant && operands.size() == 3) {
      values_[operands[1]] = operands[2];
    } else if ((code == kOpAccessChain || code == kOpInBoundsAccessChain) && operands.size() == 4 &&
               operands[2] == variable_) {
      axes_[operands[1]] = values_[operands[3]];
    }
  }
  // Of what is loaded from a pointer: one count (0 to 2) or all of them (3).
  std::optional<std::uint32_t> constant_of(std::uint32_t pointer) const {
    if (pointer == variable_) return 3;
    const auto axis = axes_.find(pointer);
    return axis == axes_.end() ? std::nullopt : std::optional(axis->second);
  }

  std::span<const std::uint32_t> words_;
  std::uint32_t variable_ = 0, uint_ = 0, vector_ = 0;
  std::map<std::uint32_t, std::uint32_t> values_;  // of constants
  std::map<std::uint32_t, std::uint32_t> axes_;    // of pointers to one count
};

}  // namespace

std::vector<std::uint32_t> with_group_counts(std::span<const std::uint32_t> words,
                                             const Dim3& counts) {
  return GroupCounts(words).replaced_by(counts);
}

}  // namespace tessera::device::vulkan
