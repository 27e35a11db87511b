// SPDX-License-Identifier: Apache-2.0
#include "kernel/embedded.hpp"

#include "base/hash.hpp"

namespace tessera::kernel {

const std::string& kernel_hash() {
  static const std::string hash = [] {
    // Names and lengths-by-digest keep "a" + "bc" apart from "ab" + "c".
    std::string digests;
    for (const EmbeddedFile& file : embedded_files()) {
      digests += std::string(file.path) + '\n' + hash128(file.text) + '\n';
    }
    for (const EmbeddedModule& module : embedded_modules()) {
      digests += std::string(module.name) + '\n' + hash128(std::as_bytes(module.words)) + '\n';
    }
    return hash128(digests);
  }();
  return hash;
}

}  // namespace tessera::kernel
