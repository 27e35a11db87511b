// SPDX-License-Identifier: Apache-2.0
// What can be asked, and done, before a call: whether it is supported, what it takes, and the
// compilation that its first run would wait for. Thread-safe, as Executor is.
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

}  // namespace tessera
