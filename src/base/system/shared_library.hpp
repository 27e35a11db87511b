// SPDX-License-Identifier: Apache-2.0
// A library that is opened when it is first needed, so that a machine without it starts.
#pragma once

#include <string>

namespace tessera {

// Never closed: what it holds may be called until the process ends.
class SharedLibrary {
 public:
  // `probe` is a function of the library. Where the process has it already, because the program
  // links the library or something stands in front of it (LD_PRELOAD), that one is used. `package`
  // is what Debian calls the library's package.
  SharedLibrary(const char* name, const char* probe, const char* package);

  // Null where there is no such function, or no library.
  void* find(const char* function) const;
  template <class Function>
  Function find_as(const char* function) const {
    return reinterpret_cast<Function>(find(function));
  }
  // Why there is no library: "libOpenCL.so.1 can't be opened (Debian: ocl-icd-libopencl1); …";
  // empty where there is one.
  const std::string& why_missing() const { return why_missing_; }

 private:
  void* handle_ = nullptr;
  bool in_process_ = false;
  std::string why_missing_;
};

}  // namespace tessera
