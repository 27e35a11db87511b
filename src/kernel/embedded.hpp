// SPDX-License-Identifier: Apache-2.0
// The kernels that the build compiled in. cmake/ generates the definitions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera::kernel {

// Text that OpenCL C programs are made of: cl_kernels/**, src/abi/*.h, src/operations/*/*.h. Paths
// are as an #include would write them: "attention/tile/forward.cl", "lib/prelude.clh",
// "operations/attention_core/core/args.h".
struct EmbeddedFile {
  std::string_view path;
  std::string_view text;
};
std::span<const EmbeddedFile> embedded_files();

// SPIR-V, one module per shader and set of build axes:
// "attention/tile/forward.comp[DTYPE=1,SUBGROUP=0]", names sorted.
struct EmbeddedModule {
  std::string_view name;
  std::span<const std::uint32_t> words;
};
std::span<const EmbeddedModule> embedded_modules();

// What the compilers at hand could not build, and why.
struct SkippedModule {
  std::string_view name;
  std::string_view why;
};
std::span<const SkippedModule> skipped_modules();

// tuning/*.json
std::span<const EmbeddedFile> embedded_tuning();

}  // namespace tessera::kernel
