// SPDX-License-Identifier: Apache-2.0
// What kernels of selective_scan are launched with.
#pragma once

#include <cstdint>
#include <functional>

#include "operations/selective_scan/args.h"
#include "operations/selective_scan/call.hpp"

namespace tessera::operations::state_space {

inline const ScanCall& scan_call_of(const Problem& problem) { return problem.as<ScanCall>(); }
inline const Layout& scan_layout_of(const Problem& problem) { return scan_call_of(problem).layout; }

// Whether gradients of b or c are wanted, of which blocks of channels have shares.
bool has_factors(const Problem& problem);

// All but how work-groups cut the call, and where things are in scratch.
abi::ScanArgs scan_arguments(const Problem& problem);

// Adds up the shares of the gradients of b, c, a, d and delta_bias; `arguments` are those of the
// pass that left them.
Pass scan_combine_pass(
    std::function<abi::ScanArgs(const Problem& problem, const Config& config)> arguments);

}  // namespace tessera::operations::state_space
