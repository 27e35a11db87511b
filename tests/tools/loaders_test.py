#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A machine without the loaders of OpenCL and Vulkan."""
import os
import shutil
import subprocess
import tempfile

from tool_test_case import ToolTest, main

LOADERS = {"libOpenCL.so.1": ("opencl", "ocl-icd-libopencl1"),
           "libvulkan.so.1": ("vulkan", "libvulkan1")}


class Loaders(ToolTest):
    def without(self, *names):
        """The environment in which what dlopen() finds first under these names is no library."""
        folder = tempfile.mkdtemp(dir=self.folder.name)
        for name in names:
            with open(os.path.join(folder, name), "wb"):
                pass
        return {"LD_LIBRARY_PATH": folder}

    def built(self, platform):
        return platform + ": this build of Tessera lacks it" not in self.succeeds("devices").stdout

    def test_the_tool_links_none(self):
        if not shutil.which("readelf"):
            self.skipTest("readelf was not found")
        table = subprocess.run(["readelf", "--dynamic", self.tool], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        self.assertIn("NEEDED", table)
        for name in LOADERS:
            self.assertNotIn(name, table)

    def test_without_either_it_starts_and_says_what_is_missing(self):
        wanted = [(name, *LOADERS[name]) for name in LOADERS if self.built(LOADERS[name][0])]
        environment = self.without(*LOADERS)
        text = self.succeeds("devices", environment=environment).stdout
        self.assertIn("[host]", text)
        for name, platform, package in wanted:
            self.assertNotIn("[%s]" % platform, text)
            missing = "%s: %s can't be opened (Debian: %s)" % (platform, name, package)
            self.assertIn(missing, text)
            self.fails(1, "check", "sequence_mean", "--device", platform, says=[missing],
                       environment=environment)

    def test_one_does_not_need_the_other(self):
        before = self.succeeds("devices").stdout
        for name, (platform, _) in LOADERS.items():
            if not self.built(platform):
                continue
            after = self.succeeds("devices", environment=self.without(name)).stdout
            self.assertNotIn("[%s]" % platform, after)
            other = "vulkan" if platform == "opencl" else "opencl"
            self.assertEqual("[%s]" % other in after, "[%s]" % other in before)


if __name__ == "__main__":
    main()
