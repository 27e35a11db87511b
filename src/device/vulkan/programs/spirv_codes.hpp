// SPDX-License-Identifier: Apache-2.0
// Numbers from the SPIR-V specification.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::device::vulkan {

inline constexpr std::uint32_t kMagic = 0x07230203;
inline constexpr std::size_t kHeaderWords = 5;
inline constexpr std::uint32_t kOpEntryPoint = 15;
inline constexpr std::uint32_t kOpCapability = 17;
inline constexpr std::uint32_t kOpTypeInt = 21;
inline constexpr std::uint32_t kOpTypeVector = 23;
inline constexpr std::uint32_t kOpConstant = 43;
inline constexpr std::uint32_t kOpConstantComposite = 44;
inline constexpr std::uint32_t kOpFunction = 54;
inline constexpr std::uint32_t kOpFunctionEnd = 56;
inline constexpr std::uint32_t kOpVariable = 59;
inline constexpr std::uint32_t kOpLoad = 61;
inline constexpr std::uint32_t kOpAccessChain = 65;
inline constexpr std::uint32_t kOpInBoundsAccessChain = 66;
inline constexpr std::uint32_t kOpDecorate = 71;
inline constexpr std::uint32_t kOpCopyObject = 83;
inline constexpr std::uint32_t kOpLoopMerge = 246;
inline constexpr std::uint32_t kOpSelectionMerge = 247;
inline constexpr std::uint32_t kOpLabel = 248;
inline constexpr std::uint32_t kOpCooperativeMatrixLoad = 4457;
inline constexpr std::uint32_t kOpCooperativeMatrixMulAdd = 4459;
inline constexpr std::uint32_t kBuiltIn = 11;
inline constexpr std::uint32_t kNumWorkgroups = 24;
inline constexpr std::uint32_t kComputeModel = 5;
inline constexpr std::uint32_t kFunctionClass = 7;
inline constexpr std::uint32_t kPushConstantClass = 9;
inline constexpr std::uint32_t kUnroll = 1;
inline constexpr std::uint32_t kDontUnroll = 2;

}  // namespace tessera::device::vulkan
