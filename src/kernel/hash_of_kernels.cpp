// SPDX-License-Identifier: Apache-2.0
#include "kernel/hash_of_kernels.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <span>

#include "base/hash.hpp"
#include "kernel/embedded.hpp"
#include "kernel/sources.hpp"
#include "tessera/error.hpp"

namespace tessera::kernel {
namespace {

// Names and digests, one to a line, keep "a" + "bc" apart from "ab" + "c".
std::string digest_of_file(const std::string& file) {
  std::string digests;
  try {
    for (const std::string& path : files_of(file))
      digests += path + '\n' + hash128(text_of(path)) + '\n';
  } catch (const BuildError& error) {  // nothing can be tuned with it either
    digests += error.what();
  }
  return hash128(digests);
}

std::string digest_of_modules(const std::string& file) {
  std::string digests;
  for (const EmbeddedModule& module : embedded_modules()) {
    if (module.name.starts_with(file + "["))
      digests += std::string(module.name) + '\n' + hash128(std::as_bytes(module.words)) + '\n';
  }
  return hash128(digests);
}

// Files do not change while a process runs, and operations ask for the same ones.
std::string known_digest(const std::string& file, Backend backend) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, Backend>, std::string> digests;
  const std::lock_guard lock(mutex);
  const auto [digest, is_new] = digests.try_emplace({file, backend});
  if (is_new) {
    digest->second = backend == Backend::kVulkan ? digest_of_modules(file) : digest_of_file(file);
  }
  return digest->second;
}

}  // namespace

std::vector<std::string> files_of(const std::string& file) {
  std::vector<std::string> files{file};
  for (std::size_t n = 0; n < files.size(); ++n) {
    for (const std::string& included : includes_of(text_of(files[n]))) {
      if (std::ranges::find(files, included) == files.end()) files.push_back(included);
    }
  }
  return files;
}

std::string hash_of_kernels(const Operation& operation, Backend backend) {
  std::set<std::string> parts;  // the order of variants is of no interest
  for (const Variant& variant : operation.variants) {
    for (const Pass& pass : variant.passes) {
      const Source& source = backend == Backend::kVulkan ? pass.vulkan : pass.opencl;
      if (backend == Backend::kHost || source.empty()) continue;
      if (!source.text.empty()) {
        parts.insert("text\n" + hash128(source.text));
      } else if (!source.spirv.empty()) {
        parts.insert("spirv\n" + hash128(std::as_bytes(std::span(source.spirv))));
      } else {
        parts.insert(source.file + '\n' + known_digest(source.file, backend));
      }
    }
  }
  std::string digests;
  for (const std::string& part : parts) digests += part + '\n';
  return hash128(digests);
}

}  // namespace tessera::kernel
