// SPDX-License-Identifier: Apache-2.0
// From a pass to what a compiler takes: flattened OpenCL C, or SPIR-V words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::kernel {

// The file with its includes in place, each once, and #line markers. Read from TESSERA_KERNEL_DIR
// where that is set, else from what the build embedded. Throws BuildError when a file is missing.
std::string flatten(std::string_view file);

// A file as it is, and the paths of its #include "…" lines. Throws BuildError when it is missing.
std::string text_of(std::string_view path);
std::vector<std::string> includes_of(const std::string& text);

// "attention/tile/forward.comp[DTYPE=1,SUBGROUP=0]"; the brackets stay where there are no axes.
std::string module_name(std::string_view file, std::vector<Define> axes);

// The embedded module, or the reason that there is none.
struct ModuleLookup {
  std::span<const std::uint32_t> words;
  std::string why_not;
};
ModuleLookup find_module(std::string_view name);

}  // namespace tessera::kernel
