#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tessera check`, `bench`, `tune` and `try`."""
import fcntl
import json
import os
import signal
import time

from tensor_files import npy
from tool_test_case import ToolTest, main


class Work(ToolTest):
    """check, bench and tune, on the host's reference: there on every machine."""

    def test_check(self):
        words = ["check", "sequence_mean", "--device", "host", "--dtype", "f32", "--quick"]
        text = self.succeeds(*words).stdout
        self.assertRegex(text, r"[1-9]\d* passed, 0 failed")
        self.assertIn("ran on no device: sequence_mean.lanes", text)
        result = json.loads(self.succeeds(*words, "--json").stdout)
        name = result["results"][0]["name"].split()[-1]
        self.assertEqual(result["failed"], 0)
        self.assertGreater(result["passed"], 0)
        for only in [["--only", "no such case"], ["--only", "no such case", "--json"]]:
            result = self.run_tool(*words, *only)
            self.assertEqual(result.returncode, 1)
            self.assertIn("no case has 'no such case' in its name; there are ", result.stderr)
            self.assertIn(name, result.stderr)

    def test_comparing_with_what_is_no_benchmark_result(self):
        for content in [b"", b"[]", b"{}", b"{\"benchmarks\": 3}", b"{\"benchmarks\": [3]}",
                        b"{\"benchmarks\": [{\"name\": 1}]}", b"\xff", b"[" * 100000,
                        b"{\"benchmarks\":[{\"name\":\"a\",\"real_time\":1,\"time_unit\":\"h\"}]}"]:
            self.fails(1, "bench", "--device", "host", "--compare", self.write("old", content))
        self.fails(1, "bench", "--device", "host", "--compare", self.path("absent"))

    @staticmethod
    def blocked_signals(pid):
        with open("/proc/%d/status" % pid) as status:
            return next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))

    def test_a_signal_has_the_summary_printed(self):
        for signal_number in [signal.SIGINT, signal.SIGTERM]:
            process = self.start("check", "--device", "host", "-v")
            for line in process.stdout:
                if " passed flash_attention" in line:
                    break
            process.send_signal(signal_number)
            text, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + signal_number)
            self.assertRegex(text, r"[1-9]\d* passed, 0 failed, \d+ skipped until it was stopped")
            self.assertIn("stopped by a signal", errors)
        process = self.start("check", "--device", "host", "--json")
        if os.path.exists("/proc/self/status"):  # until it waits for signals
            while not self.blocked_signals(process.pid) & 1 << (signal.SIGTERM - 1):
                time.sleep(0.01)
        else:
            time.sleep(1)
        process.terminate()
        text, _ = process.communicate(timeout=60)
        self.assertEqual(json.loads(text)["stopped_by"], signal.strsignal(signal.SIGTERM))

    def test_results_are_opened_before_anything_is_measured(self):
        result = self.fails(1, "bench", "--device", "host", "--json",
                            self.path("no/such/folder/x.json"), says=["cannot be created"])
        self.assertEqual(result.stdout, "")

    def test_what_cannot_be_kept_is_said(self):
        words = ["tune", "flash_attention", "--device", "host", "--dtype", "f32", "--budget", "5",
                 "--shapes", "query=1x4x2x8,key=1x4x2x8,value=1x4x2x8"]
        open_to_all = self.path("open")
        os.mkdir(open_to_all)
        os.chmod(open_to_all, 0o777)
        for directory, why in [("off", "TESSERA_CACHE_DIR is off"), (open_to_all, "others may write"),
                               ("/proc/nowhere", "/proc/nowhere")]:
            result = self.run_tool(*words, environment={"TESSERA_CACHE_DIR": directory})
            self.assertEqual(result.returncode, 1)
            self.assertIn("not kept, because", result.stderr)
            self.assertIn(why, result.stderr)
        # A lock that is held for longer than calls wait, and for less than this command does.
        self.succeeds(*words)
        lock = next(name for name in os.listdir(self.cache) if name.endswith(".lock"))
        file = os.path.join(self.cache, lock[:-len(".lock")])
        os.remove(file)
        with open(os.path.join(self.cache, lock)) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            process = self.start(*words)
            for line in process.stderr:
                if "tuned" in line:
                    break
            time.sleep(0.5)
            fcntl.flock(held, fcntl.LOCK_UN)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertTrue(os.path.exists(file))

    def test_try(self):
        text = self.succeeds("try", "--device", "host", "--min-time", "0", "--quick").stdout
        self.assertIn("configurations: 12 by heuristics, 0 tuned", text)
        self.assertEqual(text.count("0:host") + text.count("1:host") + text.count("2:host"), 12)
        self.assertNotIn("after tuning", text)


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

    def test_shapes_that_cannot_run_are_failures(self):
        result = self.run_tool("tune", "sequence_mean", "--device", self.device, "--dtype", "f32",
                               "--budget", "5", "--shapes", "input=1x1x3000000000000")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("not tuned, because", result.stderr)

    def test_try_shows_rows_before_it_tunes(self):
        words = ["try", "--device", self.device, "--quick", "--budget", "0.2", "--min-time", "0"]
        lines = self.succeeds(*words).stdout.splitlines()
        tag = self.device + ":"
        rows = [i for i, line in enumerate(lines) if line.startswith(tag)]
        tuning = next(i for i, line in enumerate(lines) if line.startswith("autotuning "))
        self.assertEqual(sum(i < tuning for i in rows), 12)
        if any("autotune" in lines[i] for i in rows):
            after = lines.index("after tuning:")
            self.assertGreater(after, tuning)
            self.assertEqual(sum(i > after for i in rows), 12)

    def test_bench_takes_a_configuration(self):
        words = ["bench", "sequence_mean", "--device", self.device, "--dtype", "f32", "--min-time",
                 "0", "--shapes", "input=2x16x32", "--json", self.path("now.json")]
        self.succeeds(*words)
        with open(self.path("now.json")) as stream:
            entry = json.load(stream)["benchmarks"][0]
        self.succeeds(*words, "--variant", entry["variant"], "--config", entry["config"])
        with open(self.path("now.json")) as stream:
            again = json.load(stream)["benchmarks"][0]
        self.assertEqual((again["config"], again["tier"]), (entry["config"], "override"))
        self.assertEqual(self.run_tool(*words, "--variant", entry["variant"], "--config",
                                       "NOTHING=1").returncode, 1)

    def test_bench_writes_and_compares(self):
        file = self.path("now.json")
        words = ["bench", "sequence_mean", "--device", self.device, "--dtype", "f32", "--min-time",
                 "0", "--shapes", "input=2x64x96", "input=1x256x128"]
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
