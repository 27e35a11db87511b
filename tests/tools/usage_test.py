#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Help, wrong words and lists of the tool."""
import json
import os
import subprocess

from tool_test_case import ToolTest, main

SUBCOMMANDS = ["devices", "run", "check", "bench", "tune", "cache", "cache list", "cache verify",
               "cache export", "cache import", "cache clear", "try"]


class Usage(ToolTest):
    def test_help_is_everywhere_and_has_examples(self):
        for words in [""] + SUBCOMMANDS:
            result = self.succeeds(*words.split(), "--help")
            self.assertIn("Example", result.stdout, words)
            self.assertIn("tessera %s" % words, result.stdout)
            self.assertEqual(result.stderr, "")

    def test_version(self):
        self.assertRegex(self.succeeds("--version").stdout, r"^tessera \d+\.\d+\.\d+")

    def test_wrong_words(self):
        self.fails(2)
        self.fails(2, "fly")
        self.fails(2, "--fast")
        self.fails(2, "cache")
        for words in SUBCOMMANDS:
            self.fails(2, *words.split(), "--no-such-option")
        self.fails(2, "cache", "export")
        self.fails(2, "bench", "--min-time", "soon")
        for bad in ["-1", "nan", "inf", "-inf", "1e9"]:
            self.fails(2, "bench", "--min-time", bad, says=["seconds"])
            self.fails(2, "try", "--min-time", bad, says=["seconds"])
        for bad in ["0", "-1", "1e9", "few"]:
            self.fails(2, "bench", "--calls", bad, says=["--calls"])
        for bad in ["0", "-1", "nan", "inf", "-inf", "1e9"]:
            self.fails(2, "tune", "--budget", bad, says=["seconds"])
            self.fails(2, "try", "--budget", bad, says=["seconds"])
        self.fails(2, "bench", "flash_attention", "--config", "WG_X=1", says=["--variant"])
        self.fails(2, "bench", "flash_attention", "--variant", "tile", "--config", "WG_X")
        for command in ["check", "bench", "tune"]:
            self.fails(2, command, "no_such_operation", says=["flash_attention"])
            self.fails(2, command, "--dtype", "f8", "--device", "host")
        for command in ["check", "bench"]:
            self.fails(2, command, "--precision", "most", "--device", "host", says=["highest"])
        self.fails(2, "check", "flash_attention", "--variant", "fastest", says=["reference"])
        self.fails(2, "bench", "flash_attention", "--variant", "fastest", "--device", "host")
        self.fails(2, "bench", "--only", "no such benchmark", "--device", "host")
        self.fails(2, "tune", "flash_attention", "--device", "host", "--shapes", "query=1x-2x3")
        self.fails(2, "tune", "flash_attention", "--device", "host", "--shapes", "query=1x2x2x4",
                   says=["key"])
        self.fails(2, "tune", "flash_attention", "--device", "host", "--set", "speed=11")

    def test_devices_that_are_not_there(self):
        for command in ["check", "bench", "tune", "try", "devices"]:
            self.fails(1, command, "--device", "no such device", says=["no such device", "host"])

    def test_malformed_environment(self):
        for name in ["TESSERA_LOG", "TESSERA_AUTOTUNE_POLICY", "TESSERA_DISABLE",
                     "TESSERA_PRECISION"]:
            self.fails(2, "devices", environment={name: "nonsense"}, says=[name])

    def test_kernel_directories_that_are_none(self):
        folder = self.path("tree/cl_kernels/pooling")
        os.makedirs(folder)
        for name in ["prepare.cl", "forward.cl", "cpu_forward.cl"]:
            os.mkfifo(os.path.join(folder, name))
        devices = json.loads(self.succeeds("devices", "--json").stdout)["devices"]
        device = next((d for d in devices if d["backend"] == "opencl"), None)
        if device is None:
            self.skipTest("no OpenCL device")
        words = ["check", "sequence_mean", "--device", str(device["index"]), "--quick", "--dtype",
                 "f32", "--variant", "cpu" if device["kind"] == "cpu" else "lanes"]
        for root, says in [(self.path("tree"), "no regular file"), ("/dev/zero", "Not a directory"),
                           (os.path.join(folder, "forward.cl"), "Not a directory"),
                           (self.path("nothing"), "holds neither")]:
            result = self.run_tool(*words, environment={"TESSERA_KERNEL_DIR": root}, timeout=60)
            self.assertEqual(result.returncode, 1)
            self.assertIn(says, result.stdout)

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            result = subprocess.run([self.tool, "run", "--list"], stdout=full, stderr=subprocess.PIPE,
                                    text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)


class Catalogue(ToolTest):
    def test_list(self):
        text = self.succeeds("run", "--list").stdout
        for word in ["flash_attention", "query", "log_sum_exp", "softmax_scale", "reference"]:
            self.assertIn(word, text)

    def test_json(self):
        operations = json.loads(self.succeeds("run", "--list", "--json").stdout)["operations"]
        flash = next(o for o in operations if o["name"] == "flash_attention")
        self.assertEqual([o["name"] for o in flash["operands"]][:3], ["query", "key", "value"])
        self.assertIn("causal", [o["name"] for o in flash["options"]])
        reference = next(v for v in flash["variants"] if v["name"] == "reference")
        self.assertEqual(reference["platforms"], ["host"])

    def test_markdown(self):
        lines = self.succeeds("run", "--list", "--markdown").stdout.splitlines()
        self.assertTrue(lines[0].startswith("| operation | OpenCL | Vulkan | host |"))
        self.assertTrue(any(line.startswith("| `flash_attention` |") for line in lines))
        self.assertEqual({line.count("|") for line in lines}, {5})

    def test_contradictions(self):
        self.fails(2, "run", "--list", "flash_attention")
        self.fails(2, "run", "--list", "--json", "--markdown")
        self.fails(2, "run", "--markdown")

    def test_devices(self):
        text = self.succeeds("devices").stdout
        self.assertIn("[host]", text)
        self.assertIn("reference", self.succeeds("devices", "-v", "--device", "host").stdout)
        devices = json.loads(self.succeeds("devices", "--json").stdout)["devices"]
        self.assertEqual([d["index"] for d in devices], list(range(len(devices))))
        for device in devices:
            self.assertRegex(device["fingerprint"], "^[0-9a-f]{32}$")
            for kernel in device["kernels"]:
                self.assertEqual(kernel["takes"], "why_not" not in kernel)


if __name__ == "__main__":
    main()
