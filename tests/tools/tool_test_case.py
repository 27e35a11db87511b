# SPDX-License-Identifier: Apache-2.0
"""Tests of the built tool from outside: SCRIPT PATH/TO/tessera [unittest arguments]. They need Python's standard library only."""
import os
import subprocess
import sys
import tempfile
import unittest

class ToolTest(unittest.TestCase):
    """A test with a folder and a cache of its own."""

    tool = ""  # its path
    working = None  # where it is started; here unless a test says otherwise

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cache = os.path.join(self.folder.name, "cache")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def variables(self, environment=None):
        variables = {k: v for k, v in os.environ.items() if not k.startswith("TESSERA_")}
        variables["TESSERA_CACHE_DIR"] = self.cache
        variables.update(environment or {})
        return variables

    def start(self, *words):
        """The tool as a process that is not waited for."""
        process = subprocess.Popen([self.tool, *words], env=self.variables(), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def run_tool(self, *words, environment=None, timeout=300):
        variables = self.variables(environment)
        return subprocess.run([self.tool, *words], env=variables, cwd=self.working, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", capture_output=True, timeout=timeout, check=False)

    def succeeds(self, *words, **options):
        result = self.run_tool(*words, **options)
        self.assertEqual(result.returncode, 0, "%s\n%s%s" % (words, result.stdout, result.stderr))
        return result

    def fails(self, code, *words, says=(), **options):
        """The tool gives up with this exit code and one sentence on stderr."""
        result = self.run_tool(*words, **options)
        where = "%s\n%s%s" % (words, result.stdout, result.stderr)
        self.assertEqual(result.returncode, code, where)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, where)
        self.assertTrue(lines[0].startswith("tessera: "), where)
        for text in says:
            self.assertIn(text, lines[0])
        return result


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: %s PATH/TO/tessera [unittest arguments]" % sys.argv[0])
    ToolTest.tool = os.path.abspath(sys.argv.pop(1))
    unittest.main()
