// SPDX-License-Identifier: Apache-2.0
// Loops that are unrolled for GPUs and stay loops on processors: lavapipe makes a loop over lanes
// of every access to memory and cuts what surrounds barriers into coroutines, so what is unrolled
// takes its compiler seconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::device::vulkan {

// A sound module whose longer loops are marked as not to be unrolled, if they branch or if the
// module multiplies cooperative matrices. Loops that reach private arrays in several places keep
// their marks: by an index that is not constant each is a gather from memory, by a constant one a
// register. A module with many operations on cooperative matrices, each of which is loops itself,
// has no loop unrolled.
std::vector<std::uint32_t> with_loops_kept(std::span<const std::uint32_t> words);

}  // namespace tessera::device::vulkan
