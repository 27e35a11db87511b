#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tessera cache`."""
import json
import os
import struct

from tool_test_case import ToolTest, main

# Of the program that a test writes, under the key "key".
KEY = "a4bdf4e564564cf8bbea0d63a05165e3"
DIGEST = b"2c379e24c2959243a181c02e30e6a124"


class Cache(ToolTest):
    def test_list_verify_clear(self):
        self.assertIn(self.cache, self.succeeds("cache", "list").stdout)
        self.succeeds("cache", "verify")
        self.assertFalse(os.path.exists(self.cache), "looking creates nothing")
        self.assertEqual(json.loads(self.succeeds("cache", "list", "--json").stdout)["directory"],
                         self.cache)
        os.mkdir(self.cache, 0o700)
        head = b'{"format": "tessera-choices", '
        self.write("cache/choices-%s.json" % ("0" * 32), head + b"not json")
        result = self.run_tool("cache", "verify")
        self.assertEqual(result.returncode, 1)
        self.assertIn("choices-", result.stdout)
        self.succeeds("cache", "list")
        self.succeeds("cache", "clear")
        self.succeeds("cache", "verify")

    def test_export_import(self):
        target = self.path("tuned.json")
        self.fails(1, "cache", "export", target)
        tuned = json.loads(self.succeeds(
            "tune", "flash_attention", "--device", "host", "--dtype", "f32", "--budget", "5", "--shapes",
            "query=1x4x2x8,key=1x4x2x8,value=1x4x2x8", "--json").stdout)["tuned"][0]
        # One candidate, which is what rules choose.
        self.assertEqual(tuned["untuned_milliseconds"], tuned["best"]["milliseconds"])
        self.assertIn("1 configurations", self.succeeds("cache", "list").stdout)
        self.succeeds("cache", "export", target)
        self.succeeds("cache", "import", target)
        self.assertIn("1 configurations", self.succeeds(
            "cache", "import", target, "--dir", self.path("other")).stdout)
        self.fails(1, "cache", "import", self.path("absent.json"), says=["absent.json"])
        self.fails(1, "cache", "import", self.write("bad.json", b"\xff\xfe{"))
        self.fails(1, "cache", "export", self.path("no/such/folder/x.json"))

    def test_a_directory_that_is_not_there(self):
        for action in ["list", "verify", "clear"]:
            self.fails(1, "cache", action, "--dir", self.path("typo"), says=["typo", "not exist"])
        self.fails(1, "cache", "--dir", self.path("typo"), "export", self.path("x"),
                   says=["not exist"])
        self.assertFalse(os.path.exists(self.path("typo")))

    def test_clear_takes_only_what_is_its_own(self):
        programs = os.path.join(self.cache, "programs")
        os.makedirs(programs, 0o700)
        os.chmod(self.cache, 0o700)
        precious = self.write("precious.tmp.txt", b"x")
        for name in ["notes.tmp.txt", "x.tmp.1.2.3", "a" * 32 + ".bin", "mine.bin"]:
            self.write("cache/programs/" + name, b"not of Tessera")
        self.write("cache/programs/" + "b" * 32 + ".bin", b"tessprg\n damaged")
        os.symlink(precious, os.path.join(programs, "c" * 32 + ".bin"))
        text = self.succeeds("cache", "clear").stdout
        self.assertIn("1 files removed", text)
        self.assertIn("left alone", text)
        self.assertEqual(len(os.listdir(programs)), 5)
        self.assertTrue(os.path.exists(precious))
        # A folder of somebody else's in place of ours.
        os.rename(programs, self.path("elsewhere"))
        self.write("elsewhere/" + "b" * 32 + ".bin", b"tessprg\n")
        os.symlink(self.path("elsewhere"), programs)
        self.succeeds("cache", "clear")
        self.assertEqual(len(os.listdir(self.path("elsewhere"))), 6)

    def test_names_cannot_steer_the_terminal(self):
        strange = "a\x1b[31m\nb\x9b"
        folder = self.path(strange)
        for words in [["cache", "list", "--dir", folder], ["cache", "import", folder],
                      ["bench", "--compare", folder], ["devices", "--device", strange],
                      ["run", strange], ["run", "flash_attention", "--input", strange + "=x"],
                      ["run", "flash_attention", "--inputs", folder, "--explain"], [strange]]:
            result = self.run_tool(*words)
            self.assertNotEqual(result.returncode, 0)
            self.assert_harmless(result)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        os.mkdir(folder, 0o700)
        self.assert_harmless(self.succeeds("cache", "list", "--dir", folder))
        self.assert_harmless(self.succeeds("cache", "list", "--json", "--dir", folder))
        for name in ["TESSERA_LOG", "TESSERA_DEVICE", "TESSERA_KERNEL_DIR"]:
            self.assert_harmless(self.run_tool("check", "--device", "host", "--only", "none",
                                               environment={name: strange}))
        device = {"name": strange, "backend": "opencl"}
        entry = {"variant": strange, "config": "", "origin": "autotune", "milliseconds": 1,
                 "error_over_bound": 0, "date": strange}
        source = self.write("import.json", json.dumps({
            "format": "tessera-choices", "version": 1, "devices": [
                {"fingerprint": "1" * 32, "device": device, "entries": {strange: entry}}]}).encode())
        if self.run_tool("cache", "import", source).returncode == 0:
            shown = self.succeeds("cache", "list", "-v")
            self.assert_harmless(shown)
            self.assertIn("\\x1b[31m\\nb", shown.stdout)

    def assert_harmless(self, result):
        for stream in [result.stdout, result.stderr]:
            for forbidden in "\x1b\x9b\x7f":
                self.assertNotIn(forbidden, stream)

    def test_limit_sizes_and_hits(self):
        self.fails(2, "cache", "list", environment={"TESSERA_CACHE_LIMIT": "much"},
                   says=["TESSERA_CACHE_LIMIT", "512M"])
        listed = json.loads(self.succeeds("cache", "list", "--json", environment={
            "TESSERA_CACHE_LIMIT": "512M"}).stdout)
        self.assertEqual((listed["bytes"], listed["limit"]), (0, 512 << 20))
        folder = os.path.join(self.cache, "programs")
        os.makedirs(folder, 0o700)
        # As Tessera writes it: magic, format, length of key, length of program, hits, digest, key, program.
        program = (struct.pack("=8sIIQQ", b"tessprg\n", 2, 3, 100, 3) + DIGEST + b"key" + bytes([7]) * 100)
        self.write(os.path.join(folder, KEY + ".bin"), program)
        files = json.loads(self.succeeds("cache", "list", "--json").stdout)["files"]
        self.assertEqual([(f["kind"], f["hits"], f["bytes"]) for f in files], [("program", 3, len(program))])
        self.assertTrue(files[0]["last_use"])
        self.assertIn("hits", self.succeeds("cache", "list").stdout)

    def test_programs_of_a_device_and_their_limit(self):
        for device in json.loads(self.succeeds("devices", "--json").stdout)["devices"]:
            if device["backend"] == "host":
                continue
            words = ["check", "sequence_mean", "--device", str(device["index"]), "--dtype", "f32",
                     "--quick", "--only", "single"]
            for _ in range(2):
                self.run_tool(*words)
            files = json.loads(self.succeeds("cache", "list", "--json").stdout)["files"]
            programs = [f for f in files if f["kind"] == "program"]
            if not programs:
                continue
            self.assertTrue(all(f["hits"] >= 1 and f["last_use"] for f in programs), programs)
            total = sum(f["bytes"] for f in files)
            small = {"TESSERA_CACHE_LIMIT": str(total // 2)}
            self.succeeds("cache", "clear")
            self.run_tool(*words, environment=small)
            listed = json.loads(self.succeeds("cache", "list", "--json", environment=small).stdout)
            self.assertLessEqual(listed["bytes"], total // 2)
            return
        self.skipTest("no driver here leaves its programs to Tessera: PoCL keeps its own, lavapipe none")

    def test_without_a_cache(self):
        for action in ["list", "verify", "clear"]:
            self.fails(1, "cache", action, environment={"TESSERA_CACHE_DIR": "off"})


if __name__ == "__main__":
    main()
