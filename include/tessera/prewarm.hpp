// SPDX-License-Identifier: Apache-2.0
// What can be asked, and done, before a call: whether it is supported, what it takes, the
// compilation that its first run would wait for, and how long its launches may be. Thread-safe, as
// Executor is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/context.hpp"
#include "tessera/export.hpp"
#include "tessera/record.hpp"
#include "tessera/tensor.hpp"

namespace tessera {

// Specs of one call's operands by name.
using Specs = std::map<std::string, TensorSpec, std::less<>>;

// The call that Executor::run() would make with tensors of these specs. Throws InvalidArgument, or
// Unsupported, for what no device can do.
TESSERA_API Problem problem_of(std::string_view operation, const Specs& operands,
                               Options options = {}, const std::vector<std::string>& wanted = {});

// Nothing if the device takes the call, otherwise why not: each variant with its reason. Builds
// nothing. Throws InvalidArgument where the executor asks for a variant that there is not.
TESSERA_API std::optional<std::string> query_support(const Executor& executor,
                                                     const Problem& problem);

// Chooses and builds what these calls need, so that the first run of each waits for no compiler;
// calls differ by their shapes, strides, offsets, dtypes and options. CPU drivers compile
// when a kernel is launched first: there each call also runs once, on operands of zeros that are
// made for it and freed again. Throws what the first of them would throw that fails; those before
// it are ready.
TESSERA_API void prewarm(const Executor& executor, std::span<const Problem> problems);

// Bytes of device memory that a run of this call takes besides its operands. A stream keeps them
// for its later calls. Builds what the call needs, as prewarm() does, for the choice of variant
// depends on what builds.
TESSERA_API std::uint64_t scratch_bytes(const Executor& executor, const Problem& problem);

// The longest time that a launch of the context's calls may take on the device, from the next call
// on; 0: as long as it takes. For machines whose desktop is drawn by the device that computes, or
// whose driver takes long launches for hangs (Windows: about 2000 ms).
//
// The first call of a shape is measured: its launches are made in growing parts, along the longest
// axis of their grids, and the call waits for each. Later calls with the same shapes, strides and
// options are cut by these times without waiting, into launches of their own that are submitted one
// by one; where a launch fits it is whole. What is computed does not change, to the bit. A part has
// at least as many work-groups as the device has units, however long they take (fewer would take as
// long), so kernels whose work-groups share out the whole work among the units, as those for Hopper
// do, stay whole. Times are those of the device when it was measured.
//
// A recording can't be measured: its launches are whole until the same call was made on the context
// or another stream. A measured call waits for what its stream waits for. Kernels are built another
// way for it, on Vulkan those that ask for the number of work-groups for each grid. Tuning,
// benchmarks, and the host platform are not cut. Throws InvalidArgument for negative times and NaN.
TESSERA_API void set_max_dispatch_ms(const Context& context, double milliseconds);

}  // namespace tessera
