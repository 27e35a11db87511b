// SPDX-License-Identifier: Apache-2.0
#include "runtime/glsl.hpp"

#include "tessera/error.hpp"

#if TESSERA_HAVE_SHADERC
#include <shaderc/shaderc.hpp>
#endif

namespace tessera::runtime {

#if TESSERA_HAVE_SHADERC

bool can_compile_glsl() { return true; }

std::vector<std::uint32_t> compile_glsl(const std::string& name, const std::string& text,
                                        const std::vector<Define>& macros) {
  shaderc::CompileOptions options;
  options.SetTargetEnvironment(shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_1);
  options.SetOptimizationLevel(shaderc_optimization_level_performance);
  for (const Define& macro : macros)
    options.AddMacroDefinition(macro.name, std::to_string(macro.value));
  const shaderc::Compiler compiler;
  const auto result =
      compiler.CompileGlslToSpv(text, shaderc_compute_shader, name.c_str(), options);
  if (result.GetCompilationStatus() != shaderc_compilation_status_success) {
    throw BuildError(name + " does not compile:\n" + result.GetErrorMessage());
  }
  return {result.cbegin(), result.cend()};
}

#else

bool can_compile_glsl() { return false; }

std::vector<std::uint32_t> compile_glsl(const std::string& name, const std::string& /*text*/,
                                        const std::vector<Define>& /*macros*/) {
  throw Unsupported(
      name + " brings GLSL, and this build of Tessera has no libshaderc; bring SPIR-V instead");
}

#endif

}  // namespace tessera::runtime
