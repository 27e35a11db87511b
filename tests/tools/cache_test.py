#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tessera cache`."""
import json

from tool_test_case import ToolTest, main


class Cache(ToolTest):
    def test_list_verify_clear(self):
        self.assertIn(self.cache, self.succeeds("cache", "list").stdout)
        self.succeeds("cache", "verify")
        self.assertEqual(json.loads(self.succeeds("cache", "list", "--json").stdout)["directory"],
                         self.cache)
        self.write("cache/choices-%s.json" % ("0" * 32), b"{ not json")
        result = self.run_tool("cache", "verify")
        self.assertEqual(result.returncode, 1)
        self.assertIn("choices-", result.stdout)
        self.succeeds("cache", "list")
        self.succeeds("cache", "clear")
        self.succeeds("cache", "verify")

    def test_export_import(self):
        target = self.path("tuned.json")
        self.fails(1, "cache", "export", target)
        self.succeeds("tune", "flash_attention", "--device", "host", "--dtype", "f32", "--budget",
                      "5", "--shapes", "query=1x4x2x8,key=1x4x2x8,value=1x4x2x8")
        self.assertIn("1 configurations", self.succeeds("cache", "list").stdout)
        self.succeeds("cache", "export", target)
        self.succeeds("cache", "import", target)
        self.assertIn("1 configurations", self.succeeds(
            "cache", "import", target, "--dir", self.path("other")).stdout)
        self.fails(1, "cache", "import", self.path("absent.json"), says=["absent.json"])
        self.fails(1, "cache", "import", self.write("bad.json", b"\xff\xfe{"))
        self.fails(1, "cache", "export", self.path("no/such/folder/x.json"))

    def test_without_a_cache(self):
        for action in ["list", "verify", "clear"]:
            self.fails(1, "cache", action, environment={"TESSERA_CACHE_DIR": "off"})


if __name__ == "__main__":
    main()
