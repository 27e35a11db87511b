// SPDX-License-Identifier: Apache-2.0
#include "support/family.hpp"

namespace tessera::testing {

std::string family_of(const Operation& operation) {
  for (const Variant& variant : operation.variants) {
    for (const Pass& pass : variant.passes) {
      for (const Source* source : {&pass.opencl, &pass.vulkan}) {
        const std::size_t slash = source->file.find('/');
        const std::string folder = source->file.substr(0, slash);
        if (slash != std::string::npos && folder != "common") return folder;
      }
    }
  }
  return operation.name;
}

}  // namespace tessera::testing
