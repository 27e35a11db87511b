#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The built tool from outside: cli_test.py PATH/TO/tessera [unittest arguments].

Reads and writes .npy and safetensors with its own code and computes attention with its own, in
double precision, so that nothing is checked against itself. Needs Python's standard library only.
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

TOOL = ""
SUBCOMMANDS = ["devices", "run", "check", "bench", "tune", "cache", "cache list", "cache verify",
               "cache export", "cache import", "cache clear", "try"]


def npy(values, shape, descr="<f4", code="f", fortran=False):
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (
        descr, fortran, "".join("%d," % n for n in shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    order = ">" if descr.startswith(">") else "<"
    data = struct.pack(order + "%d%s" % (len(values), code), *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def read_npy(path):
    """(descr, shape, values) of a file in the format that the tool writes."""
    with open(path, "rb") as file:
        content = file.read()
    assert content[:8] == b"\x93NUMPY\x01\x00", content[:8]
    length = struct.unpack("<H", content[8:10])[0]
    assert (10 + length) % 64 == 0
    header = eval(content[10:10 + length])  # our own output
    code = {"<f4": "f", "<f2": "e", "<f8": "d", "<i4": "i", "|u1": "B"}[header["descr"]]
    count = math.prod(header["shape"])
    return header["descr"], header["shape"], struct.unpack("<%d%s" % (count, code),
                                                           content[10 + length:])


def bfloat16(value):
    """The 16 bits of a float, rounded to nearest even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def from_bfloat16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def safetensors(tensors):
    """A file from {name: (dtype, shape, bytes)}."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    data = content[8 + length:]
    return {name: (entry["dtype"], entry["shape"],
                   data[entry["data_offsets"][0]:entry["data_offsets"][1]])
            for name, entry in json.loads(content[8:8 + length]).items() if name != "__metadata__"}


def attention(query, key, value, shape, causal):
    """Attention in double precision: shape = (batch, q_len, kv_len, heads, kv_heads, dim)."""
    batch, q_len, kv_len, heads, kv_heads, dim = shape
    output, sums = [0.0] * (batch * q_len * heads * dim), [0.0] * (batch * heads * q_len)
    for b in range(batch):
        for h in range(heads):
            g = h // (heads // kv_heads)
            for i in range(q_len):
                row = ((b * q_len + i) * heads + h) * dim
                scores = []
                for j in range(min(kv_len, i + 1) if causal else kv_len):
                    column = ((b * kv_len + j) * kv_heads + g) * dim
                    scores.append(sum(query[row + d] * key[column + d] for d in range(dim)) /
                                  math.sqrt(dim))
                top = max(scores)
                weights = [math.exp(s - top) for s in scores]
                total = sum(weights)
                sums[(b * heads + h) * q_len + i] = top + math.log(total)
                for d in range(dim):
                    output[row + d] = sum(
                        w * value[((b * kv_len + j) * kv_heads + g) * dim + d]
                        for j, w in enumerate(weights)) / total
    return output, sums


class Base(unittest.TestCase):
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

    def run_tool(self, *words, environment=None, timeout=300):
        variables = {k: v for k, v in os.environ.items() if not k.startswith("TESSERA_")}
        variables["TESSERA_CACHE_DIR"] = self.cache
        variables.update(environment or {})
        return subprocess.run([TOOL, *words], env=variables, stdin=subprocess.DEVNULL, text=True,
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


class Usage(Base):
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
        self.fails(2, "bench", "--min-time", "-1")
        self.fails(2, "tune", "--budget", "0")
        for command in ["check", "bench", "tune"]:
            self.fails(2, command, "no_such_operation", says=["flash_attention"])
            self.fails(2, command, "--dtype", "f8", "--device", "host")
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
        for name in ["TESSERA_LOG", "TESSERA_AUTOTUNE_POLICY", "TESSERA_DISABLE"]:
            self.fails(2, "devices", environment={name: "nonsense"}, says=[name])

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            result = subprocess.run([TOOL, "run", "--list"], stdout=full, stderr=subprocess.PIPE,
                                    text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)


class Catalogue(Base):
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


class Run(Base):
    SHAPE = (2, 5, 7, 4, 2, 8)  # batch, q_len, kv_len, heads, kv_heads, dim

    def setUp(self):
        super().setUp()
        rng = random.Random(7)
        batch, q_len, kv_len, heads, kv_heads, dim = self.SHAPE
        self.shapes = {"query": [batch, q_len, heads, dim], "key": [batch, kv_len, kv_heads, dim],
                       "value": [batch, kv_len, kv_heads, dim]}
        # Multiples of 1/16 up to 2: exact in all three dtypes.
        self.values = {name: [rng.randrange(-32, 33) / 16 for _ in range(math.prod(shape))]
                       for name, shape in self.shapes.items()}
        self.words = ["run", "flash_attention", "--device", "host", "--input"]
        for name, shape in self.shapes.items():
            self.write(name + ".npy", npy(self.values[name], shape))
            self.words.append("%s=%s" % (name, self.path(name + ".npy")))

    def inputs(self, **files):
        words = ["run", "flash_attention", "--device", "host"]
        for name in self.shapes:
            words += ["--input", "%s=%s" % (name, files.get(name, self.path(name + ".npy")))]
        return words

    def expected(self, causal=False):
        return attention(self.values["query"], self.values["key"], self.values["value"], self.SHAPE,
                         causal)

    def assert_close(self, got, expected, bound):
        self.assertEqual(len(got), len(expected))
        for a, b in zip(got, expected):
            self.assertTrue(abs(a - b) <= bound * max(1, abs(b)), "%r is not %r" % (a, b))

    def bf16_file(self):
        return self.write("in.safetensors", safetensors({
            name: ("BF16", shape, struct.pack("<%dH" % len(self.values[name]),
                                              *map(bfloat16, self.values[name])))
            for name, shape in self.shapes.items()}))

    def test_npy_to_npy(self):
        out, lse = self.path("o.npy"), self.path("l.npy")
        result = self.succeeds(*self.words, "--output", "output=" + out, "log_sum_exp=" + lse)
        self.assertIn("flash_attention.reference/f32@host", result.stdout)
        descr, shape, got = read_npy(out)
        self.assertEqual((descr, list(shape)), ("<f4", self.shapes["query"]))
        output, sums = self.expected()
        self.assert_close(got, output, 1e-6)
        descr, shape, got = read_npy(lse)
        self.assertEqual((descr, shape), ("<f4", (2, 4, 5)))
        self.assert_close(got, sums, 1e-6)

    def test_every_device(self):
        devices = json.loads(self.succeeds("devices", "--json").stdout)["devices"]
        output = self.expected(causal=True)[0]
        for device in devices:
            for dtype, bound in [("f32", 1e-5), ("f16", 2e-3), ("bf16", 2e-2)]:
                out = self.path("o.npy")
                words = list(self.words)
                words[words.index("host")] = str(device["index"])
                result = self.succeeds(*words, "--dtype", dtype, "--set", "causal=true",
                                       "--output", "output=" + out)
                self.assert_close(read_npy(out)[2], output, bound)
                if dtype == "bf16":
                    self.assertIn("written as f32", result.stderr)

    def test_kinds_of_files(self):
        output = self.expected()[0]
        query, shape = self.values["query"], self.shapes["query"]
        fortran = [query[((b * shape[1] + s) * shape[2] + h) * shape[3] + d]
                   for d in range(shape[3]) for h in range(shape[2])
                   for s in range(shape[1]) for b in range(shape[0])]
        for name, content, dtype in [
                ("double", npy(query, shape, "<f8", "d"), "<f4"),
                ("half", npy(query, shape, "<f2", "e"), "<f2"),
                ("big", npy(query, shape, ">f4", "f"), "<f4"),
                ("fortran", npy(fortran, shape, fortran=True), "<f4")]:
            out = self.path("o.npy")
            words = self.inputs(query=self.write(name, content))
            self.succeeds(*words, "--output", "output=" + out)
            descr, _, got = read_npy(out)
            self.assertEqual(descr, dtype, name)
            self.assert_close(got, output, 1e-3 if dtype == "<f2" else 1e-6)
        whole = [int(v * 16) for v in query]
        out = self.path("o.npy")
        self.succeeds(*self.inputs(query=self.write("whole", npy(whole, shape, "<i8", "q"))),
                      "--set", "softmax_scale=%r" % (1 / 16 / math.sqrt(shape[3])),
                      "--output", "output=" + out)
        self.assert_close(read_npy(out)[2], output, 1e-6)

    def test_safetensors_keep_bf16(self):
        out = self.path("out.safetensors")
        self.succeeds("run", "flash_attention", "--device", "host", "--inputs", self.bf16_file(),
                      "--outputs", out, "--want", "log_sum_exp")
        tensors = read_safetensors(out)
        output, sums = self.expected()
        dtype, shape, data = tensors["output"]
        self.assertEqual((dtype, shape), ("BF16", self.shapes["query"]))
        bits = struct.unpack("<%dH" % (len(data) // 2), data)
        self.assert_close([from_bfloat16(b) for b in bits], output, 1e-2)
        dtype, shape, data = tensors["log_sum_exp"]
        self.assertEqual((dtype, shape), ("F32", [2, 4, 5]))
        self.assert_close(struct.unpack("<40f", data), sums, 1e-6)
        self.succeeds("run", "flash_attention", "--device", "host", "--inputs", self.bf16_file(),
                      "--outputs", out)
        self.assertEqual(list(read_safetensors(out)), ["output"])

    def test_other_tensors_of_a_file_are_named_and_left(self):
        tensors = {name: ("F32", shape, struct.pack("<%df" % len(self.values[name]),
                                                    *self.values[name]))
                   for name, shape in self.shapes.items()}
        tensors["rope"] = ("U8", [1], b"\0")
        result = self.succeeds("run", "flash_attention", "--device", "host", "--inputs",
                               self.write("in", safetensors(tensors)), "--outputs", self.path("o"))
        self.assertIn("rope", result.stderr)

    def test_json_and_explain(self):
        out = self.path("o.npy")
        words = [*self.words, "--output", "output=" + out, "--json"]
        result = json.loads(self.succeeds(*words).stdout)
        self.assertEqual(result["variant"], "reference")
        self.assertEqual(result["outputs"]["output"]["file"], out)
        result = self.succeeds(*self.words, "--explain")
        self.assertIn("chosen by", result.stdout)
        self.assertIn("not tile", result.stdout)
        result = json.loads(self.succeeds(*self.words, "--explain", "--json").stdout)
        self.assertIn("tile", [r["variant"] for r in result["refused"]])
        self.assertTrue(all(r["why"] for r in result["refused"]))

    def test_wrong_usage(self):
        out = "output=" + self.path("o.npy")
        self.fails(2, "run")
        self.fails(2, "run", "no_such_operation", "--output", out, says=["flash_attention"])
        self.fails(2, *self.words, says=["--output"])
        self.fails(2, *self.words[:5], self.words[5], "--output", out, says=["key"])
        self.fails(2, *self.words, "--output", "result=" + self.path("o.npy"), says=["result"])
        self.fails(2, *self.words, "--output", "query=" + self.path("o.npy"), says=["query"])
        self.fails(2, *self.words, "output=x.npy", "--output", out)
        self.fails(2, *self.words, "nothing", "--output", out)
        self.fails(2, *self.words, self.words[5], "--output", out, says=["twice"])
        self.fails(2, *self.words, "--output", out, "log_sum_exp=" + self.path("o.npy"))
        self.fails(2, *self.words, "--output", out, "--want", "query")
        self.fails(2, *self.words, "--output", out, "--set", "casual=true", says=["causal"])
        self.fails(2, *self.words, "--output", out, "--set", "causal=perhaps", says=["causal"])
        self.fails(2, *self.words, "--output", out, "--set", "causal=true", "causal=false")
        self.fails(2, *self.words, "--output", out, "--set", "causal")
        self.fails(2, *self.words, "--output", out, "--dtype", "i32")
        self.fails(2, *self.words, "--output", out, "--variant", "fastest", says=["reference"])
        self.fails(2, *self.words, "--output", out, "--config", "BLOCK")
        self.assertFalse(os.path.exists(self.path("o.npy")))

    def test_failures(self):
        out = "output=" + self.path("o.npy")
        short = npy(self.values["key"][:-8 * 2], [2, 7, 2, 7])
        for words in [["--set", "softmax_scale=nan"], ["--set", "sliding_window=-3,1"],
                      ["--config", "BLOCK=0"], ["--variant", "tile"]]:
            self.fails(1, *self.words, "--output", out, *words)
        self.fails(1, *self.inputs(key=self.write("short.npy", short[:-1])), "--output", out)
        self.fails(1, *self.inputs(key=self.path("absent.npy")), "--output", out,
                   says=["absent.npy"])
        self.fails(1, *self.inputs(key=self.folder.name), "--output", out)
        self.fails(1, *self.words, "--output", "output=" + self.path("no/such/folder/o.npy"))
        self.fails(1, *self.inputs(key=self.path("query.npy")), "--output", out)
        self.assertFalse(os.path.exists(self.path("o.npy")))

    def test_hostile_files(self):
        out = "output=" + self.path("o.npy")
        good = npy(self.values["key"], self.shapes["key"])
        rng = random.Random(11)
        files = [b"", b"\x93NUMPY", good[:100], good[:-1], good + b"\0", os.urandom(300),
                 npy([0], [1 << 62, 4]), npy([], [0, 1 << 62, 1 << 62]), npy([0], [-1]),
                 npy([0] * 8, [8], "<c8"), npy([0] * 8, [8], "|O"), safetensors({})]
        for _ in range(20):
            damaged = bytearray(good)
            for _ in range(3):
                damaged[rng.randrange(128)] = rng.randrange(256)
            files.append(bytes(damaged))
        for content in files:
            words = self.inputs(key=self.write("bad.npy", content))
            result = self.run_tool(*words, "--output", out)
            self.assertIn(result.returncode, (0, 1, 2), (content, result.stderr))
            if result.returncode != 0:
                self.assertEqual(len(result.stderr.splitlines()), 1, (content, result.stderr))
        for content in [b"", b"\0" * 8, b"\xff" * 64, struct.pack("<Q", 1 << 60) + b"{}",
                        struct.pack("<Q", 100000) + b"[" * 100000,
                        safetensors({"query": ("F8_E4M3", [1], b"\0")}), self.read_cut()]:
            self.fails(1, "run", "flash_attention", "--inputs", self.write("bad", content),
                       "--outputs", self.path("o"))

    def read_cut(self):
        with open(self.bf16_file(), "rb") as file:
            return file.read()[:-1]

    def test_outputs_replace_inputs(self):
        query = self.path("query.npy")
        self.succeeds(*self.words, "--output", "output=" + query)
        self.assert_close(read_npy(query)[2], self.expected()[0], 1e-6)


class Cache(Base):
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


class Work(Base):
    """check, bench and tune, on the host's reference: there on every machine."""

    def test_check(self):
        words = ["check", "flash_attention", "--device", "host", "--dtype", "f32", "--quick"]
        text = self.succeeds(*words).stdout
        self.assertRegex(text, r"[1-9]\d* passed, 0 failed")
        self.assertIn("ran on no device: flash_attention.tile", text)
        result = json.loads(self.succeeds(*words, "--json").stdout)
        self.assertEqual(result["failed"], 0)
        self.assertGreater(result["passed"], 0)
        self.assertEqual(self.run_tool(*words, "--only", "no such case").returncode, 1)

    def test_comparing_with_what_is_no_benchmark_result(self):
        for content in [b"", b"[]", b"{}", b"{\"benchmarks\": 3}", b"{\"benchmarks\": [3]}",
                        b"{\"benchmarks\": [{\"name\": 1}]}", b"\xff", b"[" * 100000,
                        b"{\"benchmarks\":[{\"name\":\"a\",\"real_time\":1,\"time_unit\":\"h\"}]}"]:
            self.fails(1, "bench", "--device", "host", "--compare", self.write("old", content))
        self.fails(1, "bench", "--device", "host", "--compare", self.path("absent"))


    def test_try(self):
        text = self.succeeds("try", "--device", "host", "--min-time", "0").stdout
        self.assertIn("configurations: 12 by heuristics, 0 tuned", text)
        self.assertEqual(text.count("0:host") + text.count("1:host") + text.count("2:host"), 12)


class Devices(Base):
    """What needs a device; on a machine without one these are skipped."""

    def setUp(self):
        super().setUp()
        devices = json.loads(self.succeeds("devices", "--json").stdout)["devices"]
        self.device = next((str(d["index"]) for d in devices if d["backend"] != "host"), None)
        if self.device is None:
            self.skipTest("no OpenCL or Vulkan device")

    def test_tuned_configurations_are_found_again(self):
        shape = "query=1x16x2x8,key=1x16x2x8,value=1x16x2x8"
        tune = ["tune", "flash_attention", "--device", self.device, "--dtype", "f32", "--budget",
                "1", "--json", "--shapes", shape]
        report = json.loads(self.succeeds(*tune).stdout)["tuned"][0]
        self.assertGreater(report["best"]["milliseconds"], 0)
        again = json.loads(self.succeeds(*tune, "--missing").stdout)
        self.assertEqual((again["tuned"], again["known_before"]), ([], 1))
        words = ["run", "flash_attention", "--device", self.device, "--explain", "--json"]
        for name in ["query", "key", "value"]:
            file = self.write(name, npy([1] * 256, [1, 16, 2, 8]))
            words += ["--input", "%s=%s" % (name, file)]
        chosen = json.loads(self.succeeds(*words).stdout)
        self.assertEqual((chosen["tier"], chosen["origin"]), ("persistent", "autotune"))
        self.assertEqual(chosen["config"], report["best"]["config"])
        self.succeeds("cache", "clear")
        self.assertNotEqual(json.loads(self.succeeds(*words).stdout)["tier"], "persistent")

    def test_bench_writes_and_compares(self):
        file = self.path("now.json")
        words = ["bench", "sequence_mean", "--device", self.device, "--dtype", "f32", "--min-time",
                 "0"]
        self.succeeds(*words, "--json", file)
        with open(file) as stream:
            result = json.load(stream)
        self.assertEqual(result["context"]["devices"][0]["index"], int(self.device))
        for entry in result["benchmarks"]:
            for key in ["name", "run_type", "iterations", "real_time", "cpu_time", "time_unit",
                        "bytes_per_second", "percent_of_peak", "error_over_bound", "variant",
                        "config", "tier"]:
                self.assertIn(key, entry)
            self.assertLessEqual(entry["error_over_bound"], 1)
        # Machines are noisy: claim times that leave no doubt. One benchmark is enough.
        quickest = min(result["benchmarks"], key=lambda entry: entry["real_time"])
        for factor, code in [(1e-3, 1), (1e3, 0)]:
            entry = dict(quickest, real_time=quickest["real_time"] * factor)
            old = self.write("old.json", json.dumps({"benchmarks": [entry]}).encode())
            compared = self.run_tool(*words, "--only", quickest["case"], "--compare", old)
            self.assertEqual(compared.returncode, code, compared.stdout + compared.stderr)
            self.assertEqual("REGRESSION" in compared.stdout, code == 1)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: cli_test.py PATH/TO/tessera [unittest arguments]")
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
