// SPDX-License-Identifier: Apache-2.0
#include "kernel/hash_of_kernels.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "kernel/sources.hpp"
#include "support/fake_operation.hpp"

namespace tessera {
namespace {

using kernel::hash_of_kernels;

// Files whose text a compiler gets, by the #line markers.
std::set<std::string> files_in(const std::string& text) {
  std::set<std::string> files;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#line ")) continue;
    const std::size_t quote = line.find('"');
    files.insert(line.substr(quote + 1, line.rfind('"') - quote - 1));
  }
  return files;
}

TEST(HashOfKernelsTest, CoversEveryFileThatACompilerGets) {
  std::size_t checked = 0;
  for (const Operation* operation : all_operations()) {
    for (const Variant& variant : operation->variants) {
      for (const Pass& pass : variant.passes) {
        if (pass.opencl.file.empty()) continue;
        const std::vector<std::string> files = kernel::files_of(pass.opencl.file);
        EXPECT_EQ(std::set<std::string>(files.begin(), files.end()),
                  files_in(kernel::flatten(pass.opencl.file)))
            << pass.opencl.file;
        ++checked;
      }
    }
  }
  if (checked == 0) GTEST_SKIP() << "built without OpenCL";
}

TEST(HashOfKernelsTest, TellsFamiliesApart) {
  std::set<std::string> families, hashes;
  for (const Operation* operation : all_operations()) {
    for (const Variant& variant : operation->variants) {
      for (const Pass& pass : variant.passes) {
        const std::string family = pass.opencl.file.substr(0, pass.opencl.file.find('/'));
        if (family.empty() || family == "common") continue;  // what several families run
        if (families.insert(family).second)
          hashes.insert(hash_of_kernels(*operation, Backend::kOpenCL));
      }
    }
  }
  EXPECT_EQ(families.size(), hashes.size());
}

TEST(HashOfKernelsTest, AnEditChangesTheOperationAndThePlatformAndNoOther) {
  Operation edited = testing::fake_operation();
  const Operation& other = testing::fake_operation();
  EXPECT_EQ(hash_of_kernels(edited, Backend::kOpenCL), hash_of_kernels(other, Backend::kOpenCL));
  edited.variants[1].passes[0].opencl.text += " ";
  EXPECT_NE(hash_of_kernels(edited, Backend::kOpenCL), hash_of_kernels(other, Backend::kOpenCL));
  EXPECT_EQ(hash_of_kernels(edited, Backend::kVulkan), hash_of_kernels(other, Backend::kVulkan));
  edited.variants[1].passes[0].vulkan.spirv.push_back(0);
  EXPECT_NE(hash_of_kernels(edited, Backend::kVulkan), hash_of_kernels(other, Backend::kVulkan));
}

TEST(HashOfKernelsTest, IsOfNoInterestToOrderAndNames) {
  Operation turned = testing::fake_operation();
  std::swap(turned.variants[0], turned.variants[1]);
  turned.variants[0].name = "renamed";
  EXPECT_EQ(hash_of_kernels(turned, Backend::kOpenCL),
            hash_of_kernels(testing::fake_operation(), Backend::kOpenCL));
}

}  // namespace
}  // namespace tessera
