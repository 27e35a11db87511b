#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tessera check`, `bench`, `tune` and `try`."""
import json

from tensor_files import npy
from tool_test_case import ToolTest, main


class Work(ToolTest):
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


class Devices(ToolTest):
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

    def test_check_of_a_precision_skips_what_keeps_less(self):
        devices = json.loads(self.succeeds("devices", "--json").stdout)["devices"]
        features = next(d for d in devices if str(d["index"]) == self.device)["features"]
        variant = next((v for f, v in [("cpu_bf16", "cpu_bf16"), ("mma_sync", "mma"),
                                       ("coopmat", "cooperative")] if f in features), None)
        if variant is None:
            self.skipTest("no variant rounds factors on this device")
        result = self.run_tool("check", "flash_attention", "--device", self.device, "--variant",
                               variant, "--dtype", "bf16", "--quick", "--only", "single", "--json",
                               "--precision", "highest")
        result = json.loads(result.stdout)
        self.assertEqual((result["passed"], result["failed"]), (0, 0))
        self.assertIn("rounds factors between two products to bf16, and precision=highest forbids "
                      "that", result["skip_reasons"])

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
                        "bytes_per_second", "percent_of_peak", "peak_per_second", "unsteady",
                        "error_over_bound", "variant", "config", "tier", "precision"]:
                self.assertIn(key, entry)
            rate = entry["FLOPS" if entry["bound_by"] == "arithmetic" else "bytes_per_second"]
            self.assertAlmostEqual(entry["percent_of_peak"],
                                   100 * rate / entry["peak_per_second"], 6)
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
    main()
