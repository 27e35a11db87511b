#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tessera run`, beside attention in double precision that is computed here, so that nothing is checked against itself."""
import json
import math
import os
import random
import struct

from tensor_files import bfloat16, from_bfloat16, npy, read_npy, read_safetensors, safetensors
from tool_test_case import ToolTest, main


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


class Run(ToolTest):
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
            if dtype == "<f2":  # the others are f32
                self.fails(1, *words, "--output", "output=" + out, says=["dtype of query, f16"])
                words += ["--dtype", "f16"]
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

    def test_operands_keep_their_dtypes(self):
        batch, q_len, kv_len, heads, _, dim = self.SHAPE
        bias = [0.3 + 1e-3 * n for n in range(q_len * kv_len)]  # not exact in bf16
        tensors = {name: ("BF16", shape, struct.pack("<%dH" % len(self.values[name]),
                                                     *map(bfloat16, self.values[name])))
                   for name, shape in self.shapes.items()}
        tensors["bias"] = ("F32", [1, 1, q_len, kv_len], struct.pack("<%df" % len(bias), *bias))
        file, sums = self.write("mixed", safetensors(tensors)), []
        words = ["run", "flash_attention", "--device", "host", "--inputs", file, "--output",
                 "log_sum_exp=" + self.path("l.npy")]
        for more in [[], ["--dtype", "bf16"], ["--dtype", "f32"]]:
            result = self.succeeds(*words, *more)
            sums.append(read_npy(self.path("l.npy"))[2])
            said = [line for line in result.stderr.splitlines() if "converted" in line]
            self.assertEqual(said, {
                (): [],
                ("--dtype", "bf16"): ["tessera: converted: bias f32 to bf16"],
                ("--dtype", "f32"): ["tessera: converted: query bf16 to f32, key bf16 to f32, "
                                     "value bf16 to f32"]}[tuple(more)])
        self.assert_close(sums[0], sums[2], 1e-6)  # the operands are exact in both
        self.assertGreater(max(abs(a - b) for a, b in zip(sums[1], sums[2])), 1e-4)
        converted = json.loads(self.succeeds(*words, "--dtype", "bf16", "--json").stdout)
        self.assertEqual(converted["converted"], ["bias f32 to bf16"])

    def test_precision(self):
        words = [*self.words, "--explain", "--json"]
        for more, precision in [([], "default"), (["--precision", "highest"], "highest"),
                                (["--precision", "highest", "--set", "precision=high"], "high")]:
            result = json.loads(self.succeeds(*words, *more).stdout)
            self.assertEqual(result["precision"], precision)
        environment = {"TESSERA_PRECISION": "high"}
        result = self.succeeds(*self.words, "--explain", environment=environment)
        self.assertIn("precision: high\n", result.stdout)
        result = json.loads(self.succeeds(*words, "--precision", "highest",
                                          environment=environment).stdout)
        self.assertEqual(result["precision"], "highest")
        self.fails(2, *words, "--precision", "best", says=["default, high or highest"])

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
                        safetensors({"query": ("F4", [1], b"\0")}), self.read_cut()]:
            self.fails(1, "run", "flash_attention", "--inputs", self.write("bad", content),
                       "--outputs", self.path("o"))

    def read_cut(self):
        with open(self.bf16_file(), "rb") as file:
            return file.read()[:-1]

    def test_outputs_never_replace_inputs(self):
        query, file = self.path("query.npy"), self.bf16_file()
        with open(query, "rb") as stream:
            before = stream.read()
        os.symlink(query, self.path("link.npy"))
        os.link(query, self.path("hard.npy"))
        os.mkdir(self.path("sub"))
        for name in ["query.npy", "link.npy", "hard.npy", "sub/../query.npy"]:
            for option in [["--output", "output=" + self.path(name)],
                           ["--outputs", self.path(name)]]:
                self.fails(2, *self.words, *option, says=["input", "another file"])
        relative = ["run", "flash_attention", "--device", "host", "--inputs", file, "--outputs"]
        self.fails(2, *relative, os.path.relpath(file), says=["another file"])
        self.fails(2, *relative, file, says=["another file"])
        with open(query, "rb") as stream:
            self.assertEqual(stream.read(), before)
        out = self.path("o.npy")
        os.symlink(self.write("o.npy", b""), self.path("o_link.npy"))
        self.fails(2, *self.words, "--output", "output=" + out,
                   "log_sum_exp=" + self.path("o_link.npy"), says=["two outputs"])

    def test_options_as_python_writes_them(self):
        out = self.path("o.npy")
        for word, causal in [("True", True), ("False", False), ("ON", True), ("no", False)]:
            self.succeeds(*self.words, "--output", "output=" + out, "--set", "causal=" + word)
            self.assert_close(read_npy(out)[2], self.expected(causal)[0], 1e-6)
        results = []
        for seed in ["-1", str(2**64 - 1), str(2**63)]:
            self.succeeds(*self.words, "--output", "output=" + out, "--set", "dropout_prob=0.5",
                          "dropout_seed=" + seed)
            results.append(read_npy(out)[2])
        self.assertEqual(results[0], results[1])
        self.assertNotEqual(results[0], results[2])
        self.fails(2, *self.words, "--output", "output=" + out, "--set",
                   "dropout_seed=%d" % 2**64)

    def test_a_missing_tensor_of_a_file(self):
        tensors = {name: ("F32", shape, struct.pack("<%df" % len(self.values[name]),
                                                    *self.values[name]))
                   for name, shape in self.shapes.items()}
        tensors["k"] = tensors.pop("key")
        result = self.run_tool("run", "flash_attention", "--inputs",
                               self.write("in", safetensors(tensors)), "--outputs", self.path("o"))
        self.assertEqual(result.returncode, 2)
        for text in ["no tensor of --inputs is called 'key'", "'k'", "--input key="]:
            self.assertIn(text, result.stderr.splitlines()[-1])


if __name__ == "__main__":
    main()
