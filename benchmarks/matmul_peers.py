#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times products of `tessera bench` and of PyTorch in turns, on a GPU or on a processor.

    benchmarks/matmul_peers.py build/release/tessera                      # every row, NVIDIA GPU through OpenCL
    benchmarks/matmul_peers.py build/release/tessera --dtype bf16 --only 8192
    benchmarks/matmul_peers.py build/release/tessera --device vulkan:nvidia --dtype f16 --variant cooperative
    benchmarks/matmul_peers.py build/release/tessera --device opencl:cpu  # every row, processor

Each round times Tessera, then PyTorch (both on a GPU ten calls at a time); medians of the rounds are shown, and beside the median
call of the best round, with the clock where a driver tells, the share of the peak that Tessera measured in turns with the
calls. Tessera checks its result before it is timed, and works until its speed settles; so does PyTorch. Floats: PyTorch
without TF32, and with --tf32. Rows with an epilogue also say how much longer they take than the plain product.
"""
from __future__ import annotations

import argparse
import json
import os
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
    dtype: str
    m: int
    n: int
    k: int
    batch: int = 1
    order: str = "nt"  # of a and b: t = transposed in memory
    activation: str = "none"
    bias: bool = False
    residual: bool = False
    blocks: bool = False  # scales of 1 x 128 and 128 x 128
    operation: str = "matmul"

    @property
    def name(self) -> str:
        size = str(self.m) if self.m == self.n == self.k else f"{self.m}x{self.n}x{self.k}"
        parts = [self.dtype, self.order, size, f"b{self.batch}" if self.batch > 1 else "", "bias" if self.bias else "",
                 self.activation if self.activation != "none" else "", "residual" if self.residual else "",
                 "blocks" if self.blocks else ""]
        return "_".join(filter(None, parts))

    @property
    def plain(self) -> Case:
        return Case(self.dtype, self.m, self.n, self.k, self.batch, self.order)

    @property
    def a(self) -> tuple:
        return (self.batch,) * (self.batch > 1) + ((self.k, self.m) if self.order[0] == "t" else (self.m, self.k))

    @property
    def b(self) -> tuple:
        return (self.batch,) * (self.batch > 1) + ((self.n, self.k) if self.order[1] == "t" else (self.k, self.n))

    @property
    def words(self) -> str:  # of tessera bench --shapes
        shapes = {"a": self.a, "b": self.b}
        if self.bias:
            shapes["bias"] = (self.n,)
        if self.residual:
            shapes["residual"] = (self.m, self.n)
        if self.dtype == "e4m3fn":
            rows, columns = (self.m, self.n // 128) if self.blocks else (1, 1)
            terms = self.k // 128 if self.blocks else 1
            shapes["scale_a"], shapes["scale_b"] = (rows, terms), (columns, terms)
        return ",".join(f"{name}=" + "x".join(map(str, shape)) for name, shape in shapes.items())

    @property
    def options(self) -> tuple:  # of tessera bench --set
        turned = [f"transpose_{name}=true" for name, order in zip("ab", self.order) if order == "t"]
        output = ["output_dtype=bf16"] if self.dtype == "e4m3fn" else []
        return tuple(turned + output + ([f"activation={self.activation}"] if self.activation != "none" else []))

    def flops(self) -> float:
        return 2.0 * self.batch * self.m * self.n * self.k

    def bytes(self) -> float:
        size, result = {"f32": (4, 4), "i8": (1, 4), "e4m3fn": (1, 2)}.get(self.dtype, (2, 2))
        return float(self.batch) * (size * (self.m * self.k + self.k * self.n) + result * self.m * self.n)


def squares(dtype: str, sizes: tuple, orders: tuple = ("nt",), **more) -> list:
    return [Case(dtype, size, size, size, order=order, **more) for size in sizes for order in orders]


def gpu_cases() -> list:
    cases = []
    for dtype in ("f16", "bf16"):
        cases += squares(dtype, (4096, 8192), ("nt", "nn", "tn"))
        cases += [Case(dtype, 8192, 28672, 4096), Case(dtype, 2048, 2048, 32768)]
        cases += [Case(dtype, m, 8192, 8192, order=order) for m in (1, 4, 8, 16, 128) for order in ("nt", "nn")]
        for more in ({"bias": True}, {"bias": True, "activation": "gelu"}, {"activation": "silu"}, {"residual": True},
                     {"activation": "swiglu"}):
            cases += squares(dtype, (4096, 8192), **more)
    cases += [Case("f16", size, size, size, batch=64) for size in (1024, 512, 256)]
    cases += squares("e4m3fn", (4096, 8192)) + squares("e4m3fn", (4096, 8192), blocks=True) + squares("i8", (4096, 8192))
    return cases + squares("f32", (4096,), ("nt", "nn"))


def cpu_cases() -> list:
    return (squares("f32", (1024, 2048), ("nn",)) + [Case("f32", 1000, 1003, 997, order="nn")] +
            squares("bf16", (1024, 2048), ("nn",)) + squares("i8", (1024, 2048), ("nn",)) +
            [Case(dtype, 1, 8192, 8192) for dtype in ("f32", "bf16")] +
            [Case("f32", 64, 64, 64, batch=1000, order="nn"), Case("f32", 8, 4096, 4096, order="nn"),
             Case("f32", 8, 4096, 4096), Case("bf16", 8, 4096, 4096)])


def tessera_rows(arguments, dtype: str, options: tuple, cases: list) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        command = [arguments.tessera, "bench", cases[0].operation, "--device", arguments.device, "--dtype", dtype,
                   "--min-time", str(arguments.min_time), "--json", str(file)]
        if is_gpu(arguments.device):
            command += ["--calls", str(CALLS)]
        if arguments.variant:
            command += ["--variant", arguments.variant]
        command += [word for option in options for word in ("--set", option)]
        # PoCL's threads may end on one core otherwise.
        environment = {"POCL_AFFINITY": "1", **os.environ}
        run = subprocess.run(command + ["--shapes"] + [case.words for case in cases], capture_output=True, text=True,
                             env=environment)
        rows = json.loads(file.read_text())["benchmarks"] if file.exists() else []
    found = {row["case"]: row for row in rows}
    lines = (run.stderr.strip() or run.stdout.strip()).splitlines()
    said = lines[-1] if lines else f"exit code {run.returncode}"
    return {case: found.get(case.words, {"error_occurred": True, "error_message": said}) for case in cases}


class PyTorch:
    def __init__(self, arguments, on_gpu: bool):
        import torch

        self.torch, self.min_time, self.on_gpu = torch, arguments.min_time, on_gpu
        self.place = "cuda" if on_gpu else "cpu"
        torch.backends.cuda.matmul.allow_tf32 = arguments.tf32
        where = torch.cuda.get_device_name(0) if on_gpu else f"a processor, {torch.get_num_threads()} threads"
        self.version = f"PyTorch {torch.__version__} on {where}"

    def operand(self, shape: tuple, dtype: str):
        torch = self.torch
        if dtype == "i8":
            return torch.randint(-128, 128, shape, device=self.place, dtype=torch.int8)
        types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "e4m3fn": torch.float8_e4m3fn}
        return torch.randn(*shape, device=self.place).to(types[dtype])

    def call(self, case: Case):
        torch = self.torch
        a, b = (self.operand(shape, case.dtype) for shape in (case.a, case.b))
        left = a.transpose(-1, -2) if case.order[0] == "t" else a
        right = b.transpose(-1, -2) if case.order[1] == "t" else b
        if case.dtype == "i8":
            return lambda: torch._int_mm(left, right)
        if case.dtype == "e4m3fn":
            def ones(*shape):
                return torch.ones(*shape, device=self.place)

            scales = (ones(case.k // 128, case.m).t(), ones(case.n // 128, case.k // 128).t()) if case.blocks else (ones(()), ones(()))
            return lambda: torch._scaled_mm(left, right, scale_a=scales[0], scale_b=scales[1], out_dtype=torch.bfloat16,
                                            use_fast_accum=not case.blocks)
        bias = self.operand((case.n,), case.dtype) if case.bias else None
        residual = self.operand((case.m, case.n), case.dtype) if case.residual else None

        def product():
            z = torch.matmul(left, right) if bias is None else torch.addmm(bias, left, right)
            if case.activation == "gelu":
                z = torch.nn.functional.gelu(z)
            elif case.activation == "silu":
                z = torch.nn.functional.silu(z)
            elif case.activation == "swiglu":
                z = torch.nn.functional.silu(z[..., 0::2]) * z[..., 1::2]
            return z if residual is None else z + residual

        return product

    def once(self, call) -> float:
        if not self.on_gpu:
            begin = time.perf_counter()
            call()
            return time.perf_counter() - begin
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(CALLS):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / CALLS

    def seconds(self, case: Case) -> float:
        """NaN where this PyTorch has no such product."""
        try:
            call = self.call(case)
            call()
        except Exception as error:
            print(f"{case.name}: PyTorch says {str(error).splitlines()[0]}", flush=True)
            return float("nan")
        times, warm = [], time.perf_counter() + 0.1
        until = warm + self.min_time
        while time.perf_counter() < until or len(times) < 5:
            seconds = self.once(call)
            if time.perf_counter() > warm:
                times.append(seconds)
        return statistics.median(times)


def line(case: Case, rows: list, theirs: list, plain: float | None) -> str:
    failed = next((row for row in rows if row.get("error_occurred")), None)
    peer = statistics.median(theirs)
    if failed:
        return f"{case.name:<30} {failed['error_message'].splitlines()[0]}; PyTorch {1e3 * peer:.4f} ms"
    all_ours = [row["real_time"] * 1e-9 for row in rows]
    ours = statistics.median(all_ours)
    clock = statistics.median(row.get("clock_mhz", 0) for row in rows)
    share = statistics.median(row.get("percent_of_peak", 0) for row in rows)
    over = f", {100 * (ours / plain - 1):+.1f} % over the plain product" if plain else ""
    return (f"{case.name:<30} {rows[0]['variant']:<12} {1e3 * ours:9.4f} ms (best {1e3 * min(all_ours):.4f}) "
            f"{case.flops() / ours / 1e12:7.2f} TFLOP/s {case.bytes() / ours / 1e9:7.0f} GB/s, {share:.0f} % of "
            f"{rows[0].get('bound_by', 'the peak')} at {clock:4.0f} MHz; PyTorch {1e3 * peer:9.4f} ms, {peer / ours:5.3f} x "
            f"({min(theirs) / max(all_ours):.2f} to {max(theirs) / min(all_ours):.2f}){over}")


def add_options(parser) -> None:
    parser.add_argument("tessera", help="the tessera program")
    parser.add_argument("--device", default="opencl:nvidia", help="of Tessera (default: opencl:nvidia)")
    parser.add_argument("--dtype", choices=["f32", "f16", "bf16", "e4m3fn", "i8"], help="only rows of these factors")
    parser.add_argument("--tf32", action="store_true", help="PyTorch rounds floats to TF32")
    parser.add_argument("--variant", help="this variant instead of the chosen one")
    parser.add_argument("--only", default="", help="only cases whose names match this: parts of names, with commas between")
    parser.add_argument("--min-time", type=float, default=0.3, help="seconds for each measurement")
    parser.add_argument("--rounds", type=int, default=3)


def compare(arguments, all_cases: list, peer, on_gpu: bool) -> int:
    """Times those of the cases that are asked for, beside a peer of this class."""
    cases = [case for case in all_cases
             if any(part in case.name for part in arguments.only.split(",")) and arguments.dtype in (None, case.dtype)]
    try:
        torch = peer(arguments, on_gpu)
    except Exception as error:  # an ImportError, or no GPU
        print(f"PyTorch can't be timed: {type(error).__name__}: {error}")
        return 1
    print(f"{torch.version}, Tessera on {arguments.device}; x = times as long as Tessera, from worst to best", flush=True)
    plains: dict = {}
    for kind in dict.fromkeys((case.operation, case.dtype, case.options) for case in cases):
        chosen = [case for case in cases if (case.operation, case.dtype, case.options) == kind]
        rounds = [(tessera_rows(arguments, chosen[0].dtype, chosen[0].options, chosen),
                   {case: torch.seconds(case) for case in chosen}) for _ in range(arguments.rounds)]
        for case in chosen:
            rows = [ours[case] for ours, _ in rounds]
            if case == case.plain and not any(row.get("error_occurred") for row in rows):
                plains[case] = statistics.median(row["real_time"] * 1e-9 for row in rows)
            plain = None if case == case.plain or case.blocks else plains.get(case.plain)
            print(line(case, rows, [theirs[case] for _, theirs in rounds], plain), flush=True)
    return 0


def is_gpu(device: str) -> bool:
    return "cpu" not in device and "llvmpipe" not in device


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    arguments = parser.parse_args()
    on_gpu = is_gpu(arguments.device)
    return compare(arguments, gpu_cases() if on_gpu else cpu_cases(), PyTorch, on_gpu)


if __name__ == "__main__":
    sys.exit(main())
