// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tessera::selection {

struct ProgramFile {
  std::uint64_t hits = 0;  // times that it was loaded
  std::string problem{};   // empty = sound
};
// What is in a file of FileBlobStore.
ProgramFile inspect_program(const std::filesystem::path& path);

}  // namespace tessera::selection
