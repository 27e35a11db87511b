// SPDX-License-Identifier: Apache-2.0
#include "base/system/shared_library.hpp"

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace tessera {
namespace {

#if defined(_WIN32)
void* open_library(const char* name) { return reinterpret_cast<void*>(LoadLibraryA(name)); }
void* find_in_library(void* library, const char* function) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), function));
}
void* find_in_process(const char* /*function*/) { return nullptr; }
std::string last_problem() { return "error " + std::to_string(GetLastError()); }
#else
void* open_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
void* find_in_library(void* library, const char* function) { return dlsym(library, function); }
void* find_in_process(const char* function) { return dlsym(RTLD_DEFAULT, function); }
std::string last_problem() {
  const char* const text = dlerror();
  return text == nullptr ? "unknown" : text;
}
#endif

}  // namespace

SharedLibrary::SharedLibrary(const char* name, const char* probe, const char* package)
    : in_process_(find_in_process(probe) != nullptr) {
  if (in_process_) return;
  handle_ = open_library(name);
  if (handle_ == nullptr) {
    why_missing_ = std::string(name) + " can't be opened (Debian: " + package +
                   "); the system says: " + last_problem();
  }
}

void* SharedLibrary::find(const char* function) const {
  if (in_process_) return find_in_process(function);
  return handle_ == nullptr ? nullptr : find_in_library(handle_, function);
}

}  // namespace tessera
