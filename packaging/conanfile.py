# SPDX-License-Identifier: Apache-2.0
"""Recipe for Conan 2: `conan create packaging -s compiler.cppstd=20` in a copy of the repository.

It takes nothing from a Conan remote: what Tessera is built from are packages of the system, which tools/setup.sh
installs on Debian (headers of Eigen, nlohmann-json, xxHash, OpenCL and Vulkan; glslc).
"""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.0"


class TesseraRecipe(ConanFile):
    name = "tessera"
    description = "Deep-learning kernels for every OpenCL and Vulkan device"
    license = "Apache-2.0"
    topics = ("deep-learning", "opencl", "vulkan", "attention")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "opencl": [True, False],
        "vulkan": [True, False],
        "shaderc": [True, False],  # GLSL of one's own operations at run time
        "tools": [True, False],
        "operations": ["ANY"],  # operations and families to build, separated by ';'; "all"
    }
    default_options = {"shared": False, "fPIC": True, "opencl": True, "vulkan": True, "shaderc": False,
                       "tools": False, "operations": "all"}

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "..", "CMakeLists.txt"))
        self.version = re.search(r"VERSION (\d+\.\d+\.\d+)", text).group(1)

    def config_options(self):
        if self.settings.os == "Windows":
            del self.options.fPIC

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def validate(self):
        check_min_cppstd(self, 20)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..")
        for name in ("CMakeLists.txt", "LICENSE", "CHANGELOG.md"):
            copy(self, name, root, self.export_sources_folder)
        for folder in ("cl_kernels", "cmake", "include", "shaders", "src", "tools", "tuning"):
            copy(self, folder + "/*", root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        on = {True: "ON", False: "OFF"}
        for part in ("opencl", "vulkan", "shaderc"):
            toolchain.cache_variables["TESSERA_" + part.upper()] = on[bool(self.options.get_safe(part))]
        toolchain.cache_variables["TESSERA_BUILD_TOOLS"] = on[bool(self.options.tools)]
        toolchain.cache_variables["TESSERA_UNITY"] = "ON"
        toolchain.cache_variables["TESSERA_BUILD_TESTS"] = "OFF"
        toolchain.cache_variables["TESSERA_BUILD_BENCHMARKS"] = "OFF"
        toolchain.cache_variables["TESSERA_BUILD_EXAMPLES"] = "OFF"
        operations = str(self.options.operations)
        toolchain.cache_variables["TESSERA_OPERATIONS"] = "" if operations == "all" else operations
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The package brings its own CMake files, which know what a static library hands on.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "tessera")]
        self.cpp_info.set_property("pkg_config_name", "tessera")
        self.cpp_info.libs = ["tessera"]
        if not self.options.shared:
            self.cpp_info.defines = ["TESSERA_STATIC"]
            if self.settings.os in ("Linux", "FreeBSD"):
                self.cpp_info.system_libs = ["pthread", "dl"]
