// SPDX-License-Identifier: Apache-2.0
// What kernels of causal_conv1d are launched with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operations/causal_conv1d/args.h"
#include "operations/causal_conv1d/call.hpp"

namespace tessera::operations::state_space {

inline const ConvCall& conv_call_of(const Problem& problem) { return problem.as<ConvCall>(); }
inline const Layout& conv_layout_of(const Problem& problem) { return conv_call_of(problem).layout; }

// Whether states are written: the last inputs or, backward, the gradients of the first.
bool takes_states(const Problem& problem);
// Whether chunks leave shares of the gradients of weights and bias.
bool has_shares(const Problem& problem);
std::int64_t fours_of(const Problem& problem);  // of channels

// Of chunks of so many tokens, and as many of a batch entry.
abi::ConvArgs conv_arguments(const Problem& problem, std::int64_t chunk, std::int64_t chunks);
// In vectors of four floats: boundaries of packed sequences, then the shares of `chunks` chunks.
std::int64_t conv_scratch(const Problem& problem, std::int64_t chunks);

Pass conv_pass(const std::string& name, std::vector<std::size_t> bindings);
// Adds the shares up; `chunks_of` are all chunks.
Pass conv_combine_pass(std::int64_t (*chunks_of)(const Problem&, const Config&));

}  // namespace tessera::operations::state_space
