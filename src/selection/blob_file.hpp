// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace tessera::selection {

// What is wrong with a file of FileBlobStore; empty = sound.
std::string problem_of_program(const std::filesystem::path& path);

}  // namespace tessera::selection
