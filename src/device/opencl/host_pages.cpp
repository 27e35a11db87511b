// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/host_pages.hpp"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <memory>

namespace tessera::device::opencl {

#ifdef __linux__
namespace {

struct Pages {
  void* start;
  std::size_t bytes;
};

void CL_CALLBACK unmap(cl_mem /*memory*/, void* data) {
  const std::unique_ptr<Pages> pages(static_cast<Pages*>(data));
  munmap(pages->start, pages->bytes);
}

// Whole huge pages: maps one more than is needed, and gives back what lies around.
Pages map_pages(std::uint64_t asked) {
  const std::size_t bytes = (asked + kHugePage - 1) / kHugePage * kHugePage;
  const std::size_t mapped = bytes + kHugePage;
  void* map = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return {nullptr, 0};
  auto* first = static_cast<std::byte*>(map);
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(map) % kHugePage) % kHugePage;
  if (before > 0) munmap(first, before);
  if (before < kHugePage) munmap(first + before + bytes, kHugePage - before);
  madvise(first + before, bytes, MADV_HUGEPAGE);  // a wish: small pages are right, too
  return {first + before, bytes};
}

}  // namespace

cl_mem create_in_huge_pages(cl_context context, std::uint64_t bytes, cl_int* code) {
  auto pages = std::make_unique<Pages>(map_pages(bytes));
  *code = CL_INVALID_HOST_PTR;
  if (pages->start == nullptr) return nullptr;
  cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                 static_cast<std::size_t>(bytes), pages->start, code);
  if (*code == CL_SUCCESS) *code = clSetMemObjectDestructorCallback(memory, unmap, pages.get());
  if (*code == CL_SUCCESS) {
    static_cast<void>(pages.release());  // unmap() has it now
    return memory;
  }
  if (memory != nullptr) clReleaseMemObject(memory);
  munmap(pages->start, pages->bytes);
  return nullptr;
}
#else
cl_mem create_in_huge_pages(cl_context /*context*/, std::uint64_t /*bytes*/, cl_int* code) {
  *code = CL_INVALID_HOST_PTR;
  return nullptr;
}
#endif

}  // namespace tessera::device::opencl
