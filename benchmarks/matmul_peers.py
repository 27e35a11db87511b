#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times products of `tessera bench` and of PyTorch on a GPU in turns.

    benchmarks/matmul_peers.py build/release/tessera                                    # f16 on an NVIDIA GPU
    benchmarks/matmul_peers.py build/release/tessera --dtype bf16 --only 8192
    benchmarks/matmul_peers.py build/release/tessera --device vulkan:nvidia --variant tile

Each round times Tessera, then PyTorch, ten calls at a time; medians of the rounds are shown. Tessera checks its result before
it is timed, and works until its speed settles; so does PyTorch. Floats: PyTorch without TF32, and with --tf32.
"""
from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

CALLS = 10  # between two events, so that what a launch costs the host does not count


@dataclass(frozen=True)
class Case:
    m: int
    n: int
    k: int
    batch: int = 1
    order: str = "nt"  # of a and b: t = transposed in memory
    activation: str = "none"
    bias: bool = False

    @property
    def name(self) -> str:
        size = str(self.m) if self.m == self.n == self.k else f"{self.m}x{self.n}x{self.k}"
        parts = [self.order, size, f"b{self.batch}" if self.batch > 1 else "", "bias" if self.bias else "",
                 self.activation if self.activation != "none" else ""]
        return "_".join(filter(None, parts))

    @property
    def a(self) -> tuple:
        return (self.batch,) * (self.batch > 1) + ((self.k, self.m) if self.order[0] == "t" else (self.m, self.k))

    @property
    def b(self) -> tuple:
        return (self.batch,) * (self.batch > 1) + ((self.n, self.k) if self.order[1] == "t" else (self.k, self.n))

    @property
    def words(self) -> str:  # of tessera bench --shapes
        text = ",".join(f"{name}=" + "x".join(map(str, shape)) for name, shape in (("a", self.a), ("b", self.b)))
        return text + (f",bias={self.n}" if self.bias else "")

    @property
    def options(self) -> tuple:  # of tessera bench --set
        turned = [f"transpose_{name}=true" for name, order in zip("ab", self.order) if order == "t"]
        return tuple(turned + ([f"activation={self.activation}"] if self.activation != "none" else []))

    def flops(self) -> float:
        return 2.0 * self.batch * self.m * self.n * self.k

    def bytes(self, size: int) -> float:
        return float(size) * self.batch * (self.m * self.k + self.k * self.n + self.m * self.n)


CASES = ([Case(size, size, size, order=order) for size in (4096, 8192) for order in ("nt", "nn", "tn")] +
         [Case(4096, 4096, 4096, bias=True), Case(4096, 4096, 4096, bias=True, activation="gelu"),
          Case(8192, 8192, 8192, bias=True, activation="gelu"), Case(8192, 28672, 4096), Case(2048, 2048, 32768)] +
         [Case(size, size, size, batch=64) for size in (1024, 512, 256)] +
         [Case(m, 8192, 8192, order=order) for m in (1, 4, 8, 16, 128) for order in ("nt", "nn")])


def tessera_rows(arguments, options: tuple, cases: list) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        command = [arguments.tessera, "bench", "matmul", "--device", arguments.device, "--dtype", arguments.dtype,
                   "--min-time", str(arguments.min_time), "--json", str(file)]
        if arguments.variant:
            command += ["--variant", arguments.variant]
        command += [word for option in options for word in ("--set", option)]
        run = subprocess.run(command + ["--shapes"] + [case.words for case in cases], capture_output=True, text=True)
        rows = json.loads(file.read_text())["benchmarks"] if file.exists() else []
    found = {row["case"]: row for row in rows}
    lines = (run.stderr.strip() or run.stdout.strip()).splitlines()
    said = lines[-1] if lines else f"exit code {run.returncode}"
    return {case: found.get(case.words, {"error_occurred": True, "error_message": said}) for case in cases}


class PyTorch:
    def __init__(self, arguments):
        import torch

        self.torch, self.min_time = torch, arguments.min_time
        self.dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[arguments.dtype]
        torch.backends.cuda.matmul.allow_tf32 = arguments.tf32
        self.version = f"PyTorch {torch.__version__} on {torch.cuda.get_device_name(0)}"

    def seconds(self, case: Case) -> float:
        torch = self.torch
        a, b = (torch.randn(*shape, device="cuda", dtype=self.dtype) for shape in (case.a, case.b))
        bias = torch.randn(case.n, device="cuda", dtype=self.dtype)
        left = a.transpose(-1, -2) if case.order[0] == "t" else a
        right = b.transpose(-1, -2) if case.order[1] == "t" else b

        def call():
            product = torch.addmm(bias, left, right) if case.bias else torch.matmul(left, right)
            return torch.nn.functional.gelu(product) if case.activation == "gelu" else product

        times, until = [], time.perf_counter() + 0.1 + self.min_time
        warm = time.perf_counter() + 0.1
        while time.perf_counter() < until or len(times) < 5:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            end.synchronize()
            if time.perf_counter() > warm:
                times.append(begin.elapsed_time(end) * 1e-3 / CALLS)
        return statistics.median(times)


def line(case: Case, rows: list, theirs: list, size: int) -> str:
    failed = next((row for row in rows if row.get("error_occurred")), None)
    peer = statistics.median(theirs)
    if failed:
        return f"{case.name:<26} {failed['error_message'].splitlines()[0]}; PyTorch {1e3 * peer:.4f} ms"
    ours = statistics.median(row["real_time"] for row in rows) * 1e-9
    clock = statistics.median(row.get("clock_mhz", 0) for row in rows)
    return (f"{case.name:<26} {rows[0]['variant']:<12} {1e3 * ours:9.4f} ms {case.flops() / ours / 1e12:7.1f} TFLOP/s "
            f"{case.bytes(size) / ours / 1e9:7.0f} GB/s at {clock:4.0f} MHz; PyTorch {1e3 * peer:9.4f} ms, {peer / ours:5.3f} x "
            f"({min(theirs) / max(row['real_time'] * 1e-9 for row in rows):.2f} to "
            f"{max(theirs) / min(row['real_time'] * 1e-9 for row in rows):.2f})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tessera", help="the tessera program")
    parser.add_argument("--device", default="opencl:nvidia", help="of Tessera (default: opencl:nvidia)")
    parser.add_argument("--dtype", choices=["f32", "f16", "bf16"], default="f16")
    parser.add_argument("--tf32", action="store_true", help="PyTorch rounds floats to TF32")
    parser.add_argument("--variant", help="this variant instead of the chosen one")
    parser.add_argument("--only", default="", help="only cases whose names match this: parts of names, with commas between")
    parser.add_argument("--min-time", type=float, default=0.3, help="seconds for each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    cases = [case for case in CASES if any(part in case.name for part in arguments.only.split(","))]
    try:
        torch = PyTorch(arguments)
    except Exception as error:  # an ImportError, or no GPU
        print(f"PyTorch can't be timed: {type(error).__name__}: {error}")
        return 1
    print(f"{torch.version}, Tessera on {arguments.device}, {arguments.dtype}; x = times as long as Tessera, from worst to best",
          flush=True)
    for options in dict.fromkeys(case.options for case in cases):
        chosen = [case for case in cases if case.options == options]
        rounds = [(tessera_rows(arguments, options, chosen), {case: torch.seconds(case) for case in chosen})
                  for _ in range(arguments.rounds)]
        for case in chosen:
            print(line(case, [ours[case] for ours, _ in rounds], [theirs[case] for _, theirs in rounds],
                       4 if arguments.dtype == "f32" else 2), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
