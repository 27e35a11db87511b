#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times rms_norm and layer_norm, forward and backward, of `tessera bench` and of PyTorch in turns, beside a copy.

    benchmarks/norms_peers.py build/release/tessera                          # a CPU through PoCL
    benchmarks/norms_peers.py build/release/tessera --device opencl:nvidia --dtype bf16
    benchmarks/norms_peers.py build/release/tessera --device vulkan:nvidia --only backward

Each round times Tessera, then PyTorch, then PyTorch's copy of 256 MiB; medians of the rounds are shown. Rates count every
operand once: input, output, weights and, backward, the output's gradient, so a share of 100 % is as fast as the copy. Tessera
checks its result before it is timed.
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

BYTES = {"f32": 4, "f16": 2, "bf16": 2}


@dataclass(frozen=True)
class Case:
    operation: str
    rows: int
    dim: int
    backward: bool

    @property
    def name(self) -> str:
        return f"{self.operation}_r{self.rows}_d{self.dim}" + ("_backward" if self.backward else "")

    def words(self) -> str:  # of tessera bench --shapes
        rows, dim = f"{self.rows}x{self.dim}", str(self.dim)
        words = f"input={rows},weight={dim}"
        if self.operation == "layer_norm":
            words += f",bias={dim}"
        if self.backward:
            words += f",grad_output={rows},grad_weight={dim}" + (f",grad_bias={dim}" if self.operation == "layer_norm" else "")
        return words

    def bytes(self, dtype: str) -> float:
        return (3 if self.backward else 2) * self.rows * self.dim * BYTES[dtype]


CASES = [Case(operation, rows, dim, backward) for backward in (False, True) for operation in ("rms_norm", "layer_norm")
         for rows, dim in ((16384, 4096), (65536, 768), (1024, 65536))]


def tessera_seconds(arguments, case: Case) -> float:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        name = case.operation + ("_backward" if case.backward else "")
        command = [arguments.tessera, "bench", name, "--device", arguments.device, "--dtype", arguments.dtype, "--min-time",
                   str(arguments.min_time), "--json", str(file), "--shapes", case.words()]
        if arguments.variant:
            command += ["--variant", arguments.variant]
        run = subprocess.run(command, capture_output=True, text=True)
        rows = json.loads(file.read_text())["benchmarks"] if file.exists() else []
    if not rows or rows[0].get("error_occurred"):
        sys.exit(f"{case.name}: {run.stdout}{run.stderr}")
    return rows[0]["real_time"] * 1e-9


class PyTorch:
    def __init__(self, arguments):
        import torch

        self.torch, self.min_time = torch, arguments.min_time
        self.on_gpu = "cpu" not in arguments.device
        self.place = "cuda" if self.on_gpu else "cpu"
        self.dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[arguments.dtype]
        self.version = f"PyTorch {torch.__version__} on " + (torch.cuda.get_device_name(0) if self.on_gpu else "the CPU")

    def median(self, call) -> float:
        torch, times = self.torch, []
        for run in range(1000):
            if self.on_gpu:
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                call()
                end.record()
                end.synchronize()
                seconds = begin.elapsed_time(end) * 1e-3
            else:
                start = time.perf_counter()
                call()
                seconds = time.perf_counter() - start
            if run >= 3:  # after warming up
                times.append(seconds)
            if len(times) >= 5 and sum(times) >= self.min_time:
                break
        return statistics.median(times)

    def seconds(self, case: Case) -> float:
        torch = self.torch
        x, gradient = (torch.randn(case.rows, case.dim, device=self.place, dtype=self.dtype) for _ in range(2))
        weight, bias = (torch.randn(case.dim, device=self.place, dtype=self.dtype) for _ in range(2))
        wanted = [x, weight] + ([bias] if case.operation == "layer_norm" else [])
        for tensor in wanted:
            tensor.requires_grad_(case.backward)

        def forward():
            if case.operation == "rms_norm":
                return torch.nn.functional.rms_norm(x, (case.dim,), weight, 1e-6)
            return torch.nn.functional.layer_norm(x, (case.dim,), weight, bias, 1e-6)

        if not case.backward:
            return self.median(forward)
        output = forward()
        return self.median(lambda: torch.autograd.grad(output, wanted, gradient, retain_graph=True))

    def copy_rate(self) -> float:  # bytes read and written in a second
        size = 1 << 26
        source, target = (self.torch.zeros(size, device=self.place) for _ in range(2))
        return 8 * size / self.median(lambda: target.copy_(source))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tessera", help="the tessera program")
    parser.add_argument("--device", default="opencl:cpu", help="of Tessera (default: opencl:cpu)")
    parser.add_argument("--dtype", choices=list(BYTES), default="f32")
    parser.add_argument("--variant", help="this variant instead of the chosen one")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--min-time", type=float, default=0.3, help="seconds for each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    try:
        torch = PyTorch(arguments)
    except Exception as error:  # an ImportError, or no GPU
        print(f"PyTorch can't be timed: {type(error).__name__}: {error}")
        return 1
    print(f"{torch.version}, Tessera on {arguments.device}, {arguments.dtype}")
    for case in [case for case in CASES if arguments.only in case.name]:
        rounds = [(tessera_seconds(arguments, case), torch.seconds(case), torch.copy_rate()) for _ in range(arguments.rounds)]
        ours, theirs, copy = (statistics.median(column) for column in zip(*rounds))
        rate = case.bytes(arguments.dtype) / ours
        print(f"{case.name:<34} {1e3 * ours:8.3f} ms {rate / 1e9:7.1f} GB/s {100 * rate / copy:5.1f} % of a copy's "
              f"{copy / 1e9:.0f}; PyTorch {1e3 * theirs:8.3f} ms, {theirs / ours:5.2f} x", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
