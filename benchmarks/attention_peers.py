#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times attention in PyTorch and ONNX Runtime on this machine's CPU beside `tessera bench`.

    benchmarks/attention_peers.py build/release/tessera
    benchmarks/attention_peers.py build/release/tessera --only causal --dtype f32 --min-time 1

Both sides run the same shapes on all cores that this process may use, in turns: Tessera, then the peers, and so on. Times
and ratios are medians of the rounds, and each round's is a median. Peers get contiguous tensors in the layout that they
like best. Shares are of the f32 FMA rate that Tessera measured beside its calls, for both sides and all types; operations
of hidden keys do not count. Decoding finds its keys in no cache. Needs Python 3.9; peers that are not installed are named
and skipped: `pip install torch`, `pip install onnxruntime onnx numpy`.
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

FORWARD, BACKWARD = "flash_attention", "flash_attention_backward"


@dataclass(frozen=True)
class Case:
    operation: str  # of Tessera, and the name of its benchmark
    name: str
    q_len: int
    kv_len: int
    dim: int
    causal: bool = False
    heads: int = 8
    kv_heads: int = 8
    batch: int = 1
    dtypes: tuple = ("f32", "f16", "bf16")

    def flops(self) -> float:
        pairs = self.q_len * self.kv_len
        if self.causal:  # row i sees keys 0 to i
            pairs = sum(min(row + 1, self.kv_len) for row in range(self.q_len))
        products = 5 if self.operation == BACKWARD else 2
        return 2.0 * products * self.batch * self.heads * pairs * self.dim

    def cache_bytes(self, dtype: str) -> float:
        """Of keys and values: what decoding has to read."""
        return 2.0 * self.batch * self.kv_heads * self.kv_len * self.dim * (4 if dtype == "f32" else 2)


# The whole comparison. The name is what `tessera bench OPERATION` calls the shape; a case that the given tessera does not
# have is said to be missing, and its peers are timed all the same.
CASES = [
    Case(FORWARD, "b1_h8_s2048_d64", 2048, 2048, 64),
    Case(FORWARD, "b1_h8_s2048_d64_causal", 2048, 2048, 64, causal=True),
    Case(FORWARD, "b1_h8_s2048_d128", 2048, 2048, 128),
    Case(FORWARD, "b1_h8_s2048_d128_causal", 2048, 2048, 128, causal=True),
    Case(BACKWARD, "b1_h8_s2048_d64", 2048, 2048, 64),
    Case(BACKWARD, "b1_h8_s2048_d64_causal", 2048, 2048, 64, causal=True),
    Case(BACKWARD, "b1_h8_s2048_d128", 2048, 2048, 128),
    Case(BACKWARD, "b1_h8_s2048_d128_causal", 2048, 2048, 128, causal=True),
    Case(FORWARD, "b1_h8_q1_k8192_d64", 1, 8192, 64),
    Case(FORWARD, "b1_h8_q1_k8192_d128", 1, 8192, 128),
    Case(FORWARD, "b1_h32_kv8_q1_k8192_d128", 1, 8192, 128, heads=32),
]


class Unable(Exception):
    """Why a peer has no time for a case."""


def first_line(text: str) -> str:
    return text.strip().split("\n")[0]


# Read between calls that only read: the caches then hold nothing of their operands, as for Tessera's.
NEIGHBOUR = bytearray(256 << 20)


def median_seconds(call, min_time: float, cold: bool) -> float:
    call()  # warm up: allocations, code generation
    call()
    times = []
    begin = time.perf_counter()
    while len(times) < (30 if cold else 3) or time.perf_counter() - begin < min_time:
        if cold:
            NEIGHBOUR.count(1)
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class PyTorch:
    name = "PyTorch"

    def __init__(self, threads: int):
        import torch

        self.torch = torch
        torch.set_num_threads(threads)
        self.version = torch.__version__

    def prepare(self, case: Case, dtype: str):
        torch = self.torch
        kind = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
        backward = case.operation == BACKWARD

        def tensor(heads: int, rows: int):
            return torch.randn(case.batch, heads, rows, case.dim, dtype=kind, requires_grad=backward)

        q = tensor(case.heads, case.q_len)
        k, v = (tensor(case.kv_heads, case.kv_len) for _ in range(2))
        options = {"is_causal": case.causal}
        if case.heads != case.kv_heads:
            options["enable_gqa"] = True
        attention = torch.nn.functional.scaled_dot_product_attention
        if backward:
            output = attention(q, k, v, **options)
            gradient = torch.randn_like(output)
            return lambda: torch.autograd.grad(output, (q, k, v), gradient, retain_graph=True)

        def forward():
            with torch.no_grad():
                attention(q, k, v, **options)

        return forward


class OnnxRuntime:
    name = "ONNX Runtime"

    def __init__(self, threads: int):
        import numpy
        import onnx
        import onnxruntime

        self.numpy, self.onnx, self.runtime, self.threads = numpy, onnx, onnxruntime, threads
        self.version = onnxruntime.__version__

    def model(self, case: Case) -> bytes:
        onnx = self.onnx
        names = ["query", "key", "value"]
        lengths = [case.q_len, case.kv_len, case.kv_len]

        def info(name: str, rows: int):
            shape = [case.batch, rows, case.heads * case.dim]
            return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)

        node = onnx.helper.make_node("MultiHeadAttention", names, ["output"], domain="com.microsoft",
                                     num_heads=case.heads, unidirectional=int(case.causal))
        graph = onnx.helper.make_graph([node], "attention", [info(*pair) for pair in zip(names, lengths)],
                                       [info("output", case.q_len)])
        domains = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
        return onnx.helper.make_model(graph, opset_imports=domains, ir_version=8).SerializeToString()

    def prepare(self, case: Case, dtype: str):
        if case.operation == BACKWARD:
            raise Unable("the inference runtime has no backward pass")
        if dtype != "f32":
            raise Unable("MultiHeadAttention on CPUs takes f32 only")
        if case.heads != case.kv_heads:
            raise Unable("MultiHeadAttention has no grouped heads")
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        session = self.runtime.InferenceSession(self.model(case), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        generator = self.numpy.random.default_rng(1)
        for name, rows in (("query", case.q_len), ("key", case.kv_len), ("value", case.kv_len)):
            data = generator.standard_normal((case.batch, rows, case.heads * case.dim), dtype=self.numpy.float32)
            binding.bind_ortvalue_input(name, self.runtime.OrtValue.ortvalue_from_numpy(data))
        binding.bind_output("output")
        return lambda: session.run_with_iobinding(binding)


PEERS = [PyTorch, OnnxRuntime]


def make_peers(threads: int):
    """The peers that can be imported, and a sentence for each that cannot."""
    peers, missing = [], []
    for kind in PEERS:
        try:
            peers.append(kind(threads))
        except Exception as error:  # an ImportError, or a library that fails as it loads
            missing.append(f"{kind.name} is missing: {type(error).__name__}: {first_line(str(error))}")
    return peers, missing


UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class Tessera:
    name = "Tessera"

    def __init__(self, arguments):
        self.arguments = arguments
        self.device = None  # as `tessera bench` describes it
        self.peak = 0.0     # the best f32 FMA rate of all runs

    def seconds(self, case: Case, dtype: str):
        """Seconds, or the reason why there are none."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bench.json"
            command = [self.arguments.tessera, "bench", case.operation, "--device", self.arguments.device, "--dtype", dtype,
                       "--only", case.name, "--min-time", str(self.arguments.min_time), "--json", str(file)]
            run = subprocess.run(command, capture_output=True, text=True)
            if not file.exists():
                lines = (run.stderr.strip() or run.stdout.strip()).splitlines()
                return lines[-1] if lines else f"exit code {run.returncode}"
            results = json.loads(file.read_text())
        if self.device is None:
            self.device = results["context"]["devices"][0]
            print(f"{self.name} {results['context']['library_version']} ({results['context']['library_build_type']}) on "
                  f"{self.device['backend']}:{self.device['name']}\n")
        self.peak = max(self.peak, results["context"]["devices"][0]["peak_fma_flops"])
        row = results["benchmarks"][0]
        if row.get("error_occurred"):
            return f"failed: {first_line(row.get('error_message', ''))}"
        return row["real_time"] * UNIT_SECONDS[row["time_unit"]]


def peer_seconds(peer, case: Case, dtype: str, min_time: float):
    try:
        return median_seconds(peer.prepare(case, dtype), min_time, cold=case.q_len == 1)
    except Unable as reason:
        return str(reason)
    except Exception as error:  # a peer may refuse a shape or a type in any way
        return f"{type(error).__name__}: {first_line(str(error))}"


def row_text(who: str, seconds, case: Case, dtype: str, peak: float, ratio: str) -> str:
    if isinstance(seconds, str):
        return f"    {who:<14} {seconds}"
    rate = case.flops() / seconds
    share = f"{100 * rate / peak:5.1f} % of peak" if peak else "peak unknown"
    return (f"    {who:<14} {1e3 * seconds:10.3f} ms {rate / 1e9:8.1f} GFLOP/s {share} "
            f"{case.cache_bytes(dtype) / seconds / 1e9:7.2f} GB/s of k and v {ratio}").rstrip()


def compare(tessera: Tessera, peers, case: Case, dtype: str, arguments) -> None:
    rounds = {who.name: [] for who in [tessera, *peers]}
    for _ in range(arguments.rounds):
        rounds[tessera.name].append(tessera.seconds(case, dtype))
        for peer in peers:
            rounds[peer.name].append(peer_seconds(peer, case, dtype, arguments.min_time))
    print(f"{case.operation}/{case.name}/{dtype}")
    ours = rounds[tessera.name]
    for who, times in rounds.items():
        reason = next((time for time in times if isinstance(time, str)), None)
        ratio = ""
        if who != tessera.name and not any(isinstance(time, str) for time in ours + times):
            ratio = f"{statistics.median(their / our for our, their in zip(ours, times)):7.2f} x"
        print(row_text(who, reason or statistics.median(times), case, dtype, tessera.peak, ratio), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tessera", help="the tessera program")
    parser.add_argument("--device", default="opencl", help="of Tessera (default: opencl)")
    parser.add_argument("--dtype", choices=["f32", "f16", "bf16"], help="only this type")
    parser.add_argument("--only", help="only cases whose name contains this")
    parser.add_argument("--min-time", type=float, default=0.5, help="seconds for each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="how often both sides take their turn")
    arguments = parser.parse_args()

    cases = [case for case in CASES if not arguments.only or arguments.only in case.name]
    if not cases:
        parser.error("no case has such a name")
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    peers, missing = make_peers(threads)
    for peer in peers:
        print(f"{peer.name} {peer.version}, {threads} threads")
    for sentence in missing:
        print(sentence)
    print("x = how many times as long as Tessera the peer takes")

    tessera = Tessera(arguments)
    for case in cases:
        for dtype in case.dtypes:
            if not arguments.dtype or dtype == arguments.dtype:
                compare(tessera, peers, case, dtype, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
