#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged files and senseless command lines: the tool says what is wrong in one sentence and gives up. TESSERA_HOSTILE=N tries N of each kind in
place of a few, TESSERA_HOSTILE_SEED=S other ones."""
import json
import os
import random
import struct

from tensor_files import npy, safetensors
from tool_test_case import ToolTest, main

COUNT = int(os.environ.get("TESSERA_HOSTILE", "12"))
SEED = int(os.environ.get("TESSERA_HOSTILE_SEED", "1"))
NUMBERS = [b"-1", b"0", b"1e999", b"nan", b"9223372036854775808", b"18446744073709551616",
           b"null", b"[]", b"{}", b'""', b"1.5", b"\x1b[2J", b"\xff\xfe", b"\n", b"\0"]


def mutate(rng, content):
    """One to four changes: bytes, cuts, repeats, foreign pieces."""
    content = bytearray(content)
    for _ in range(rng.randrange(1, 5)):
        at, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
        kind = rng.randrange(6)
        if kind == 0 and content:
            content[at % len(content)] = rng.randrange(256)
        elif kind == 1:
            content[at:min(end, at + 64)] = b""
        elif kind == 2:
            content[at:at] = content[at:min(end, at + 64)]
        elif kind == 3:
            content[at:at + rng.randrange(8)] = rng.choice(NUMBERS)
        elif kind == 4:
            content[at:] = b""
        elif content:
            content[at % len(content)] ^= 1 << rng.randrange(8)
    return bytes(content)


class Hostile(ToolTest):
    SHAPE = [1, 3, 1, 4]

    def setUp(self):
        super().setUp()
        self.working = self.path("work")
        os.mkdir(self.working)
        self.rng = random.Random(SEED)
        self.tensor = struct.pack("<12f", *range(12))

    def judge(self, result, what):
        """Ends by itself; a failure is one harmless sentence."""
        where = "seed %d: %r\n%s%s" % (SEED, what, result.stdout, result.stderr)
        self.assertIn(result.returncode, (0, 1, 2), where)
        for stream in [result.stdout, result.stderr]:
            self.assertNotIn("\x1b", stream, where)
        if result.returncode != 0:
            last = result.stderr.splitlines()
            self.assertTrue(last and last[-1].startswith("tessera: ") and len(last[-1]) > 12, where)

    def run_on(self, *inputs):
        return self.run_tool("run", "flash_attention", "--device", "host", *inputs, "--output",
                             "output=" + self.path("o.npy"), timeout=60)

    def test_tensor_files(self):
        good = npy(list(range(12)), self.SHAPE)
        file = safetensors({name: ("F32", self.SHAPE, self.tensor)
                            for name in ["query", "key", "value"]})
        query = self.write("q.npy", good)
        for _ in range(COUNT):
            bad = mutate(self.rng, good)
            self.judge(self.run_on("--input", "query=" + query, "key=" + query,
                                   "value=" + self.write("bad.npy", bad)), bad)
            bad = mutate(self.rng, file)
            self.judge(self.run_on("--inputs", self.write("bad", bad)), bad)

    def test_cache_files(self):
        self.succeeds("tune", "flash_attention", "--device", "host", "--dtype", "f32", "--budget",
                      "5", "--shapes", "query=1x4x2x8,key=1x4x2x8,value=1x4x2x8")
        name = next(n for n in os.listdir(self.cache) if n.endswith(".json"))
        with open(os.path.join(self.cache, name), "rb") as stream:
            good = stream.read()
        program = b"tessprg\n" + struct.pack("<IIQQ32s", 2, 3, 5, 0, b"0" * 32) + b"keyblob5"
        for i in range(COUNT):
            bad = mutate(self.rng, good)
            path = os.path.join(self.cache, name)
            self.write("cache/" + name, bad)
            os.chmod(path, 0o600)
            os.makedirs(os.path.join(self.cache, "programs"), mode=0o700, exist_ok=True)
            self.write("cache/programs/%032x.bin" % i, mutate(self.rng, program))
            words = self.rng.choice([["cache", "list", "-v"], ["cache", "list", "--json"],
                                     ["cache", "verify", "--json"],
                                     ["cache", "export", self.path("out.json")],
                                     ["tune", "flash_attention", "--device", "host", "--dtype",
                                      "f32", "--budget", "1", "--missing", "--shapes",
                                      "query=1x4x2x8,key=1x4x2x8,value=1x4x2x8"]])
            result = self.run_tool(*words, timeout=60)
            if words[:2] != ["cache", "verify"]:  # which says it in its result
                self.judge(result, (words, bad))
            if "--json" in words:
                json.loads(result.stdout)
            self.judge(self.run_tool("cache", "import", self.write("bad.json", bad), timeout=60),
                       bad)
        self.succeeds("cache", "clear")

    def words(self):
        """A command line of words that mean something, in an order that may not."""
        rng = self.rng
        values = ["flash_attention", "sequence_mean", "f32", "f8", "host", "tile", "reference", "",
                  "-", "--", "=", ",", "a=b", "causal=True", "causal=", "=true", "nan", "inf", "-1",
                  "0", "1e999", "99999999999999999999", "WG_X=0", "WG_X=4294967296", "WG_X=1,WG_X=2",
                  "query=1x2x1x4,key=1x2x1x4,value=1x2x1x4", "query=0x0x0x0,key=0x0x0x0,value=0x0x0x0",
                  "query=9223372036854775807x2", "query=1x", "x", "query=" + self.path("q.npy"),
                  self.path("nothing"), self.folder.name, "/dev/null", "/dev/full", "\x1b[2J", "a\nb",
                  "\u202e", "%s%n", "../..", "A" * 5000]
        options = ["--device", "--dtype", "--variant", "--config", "--only", "--set", "--shapes",
                   "--input", "--inputs", "--output", "--outputs", "--want", "--json", "--markdown",
                   "--list", "--explain", "--compare", "--budget", "--min-time", "--dir", "-v",
                   "--missing", "--quick", "--help", "--version", "--no-such"]
        command = rng.choice(["run", "run", "check", "bench", "tune", "devices", "cache list",
                              "cache verify", "cache export", "cache import", "try", "cache", ""])
        words = command.split()
        for _ in range(rng.randrange(1, 7)):
            words.append(rng.choice(options if rng.random() < 0.5 else values))
        if command in ("check", "bench", "tune", "try"):  # that could run for minutes
            words += ["--device", "no such device"]
        return [word for word in words if "\0" not in word]

    def test_command_lines(self):
        for _ in range(4 * COUNT):
            words = self.words()
            self.judge(self.run_tool(*words, timeout=60), words)


if __name__ == "__main__":
    main()
