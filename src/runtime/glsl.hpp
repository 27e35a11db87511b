// SPDX-License-Identifier: Apache-2.0
// GLSL that an application brings at run time, compiled by libshaderc where Tessera was built with
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::runtime {

bool can_compile_glsl();
// Throws BuildError with the compiler's log, Unsupported without libshaderc.
std::vector<std::uint32_t> compile_glsl(const std::string& name, const std::string& text,
                                        const std::vector<Define>& macros);

}  // namespace tessera::runtime
