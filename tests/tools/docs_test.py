#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/update_docs.py, in a copy of what it reads: headers that are stale, missing or of no operation are seen and mended."""
import pathlib
import shutil
import subprocess
import sys

from tool_test_case import ToolTest, main

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Docs(ToolTest):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.folder.name, "tree")
        for name in ["tools/update_docs.py", "tools/c_operations.py", "README.md", "docs/environment.md"]:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.headers = self.root / "include/tessera/c"
        self.headers.parent.mkdir(parents=True)

    def update(self, *words):
        return subprocess.run([sys.executable, self.root / "tools/update_docs.py", self.tool, *words], text=True,
                              env=self.variables(), capture_output=True, check=False)

    def test_each_operation_has_a_header_and_each_header_an_operation(self):
        self.assertIn("tessera/c/values.h", self.update("--check").stderr)
        self.assertEqual(self.update().returncode, 0)
        self.assertEqual(self.update("--check").returncode, 0)
        made = sorted(self.headers.glob("*.h"))
        all_of_them = (self.root / "include/tessera/tessera_operations.h").read_text(encoding="utf-8")
        for path in made:
            if path.name != "values.h":
                self.assertIn(f'#include "tessera/c/{path.name}"\n', all_of_them)

        def spoil(name, change):
            change()
            result = self.update("--check")
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr, f"include/tessera/c/{name}: out of date; run tools/update_docs.py with the built tool\n")
            self.assertEqual(self.update().returncode, 0)
            self.assertEqual(self.update("--check").returncode, 0)
            self.assertEqual(sorted(self.headers.glob("*.h")), made)

        first = made[0]
        spoil(first.name, first.unlink)
        spoil(first.name, lambda: first.write_text("/* of an earlier version */\n", encoding="utf-8"))
        spoil("of_no_operation.h", lambda: (self.headers / "of_no_operation.h").write_text("", encoding="utf-8"))


if __name__ == "__main__":
    main()
