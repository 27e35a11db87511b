#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times decoding over keys in pages by `tessera_benchmarks` and in PyTorch, on the same NVIDIA GPU in turns.

    benchmarks/serving_peers.py build/release/tessera_benchmarks
    benchmarks/serving_peers.py build/release/tessera_benchmarks --device vulkan:nvidia --pages 16 --flex

32 sequences of 32768 keys, 32 heads, 8 key heads, dim 128, f16, as serving/pages16 and serving/pages64 have them. PyTorch has
no pages: its keys are gathered from a pool in the layout that it likes best, pages one after the other, and attended by
scaled_dot_product_attention, by each backend that takes the call, and with --flex by flex_attention, which takes long to
compile. Gathered keys stand beside it alone, too, for a program that keeps a copy. Times are medians of the rounds, and each
round's is a median by the host's clock, of calls one after the other. Needs PyTorch with CUDA.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

SEQUENCES, KEYS, HEADS, KV_HEADS, DIM = 32, 32768, 32, 8, 128
BYTES = 2.0 * SEQUENCES * KEYS * KV_HEADS * DIM * 2  # of keys and values, each once


def first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


class Tessera:
    def __init__(self, program: str, device: str):
        self.words = [program, "--benchmark_format=json"]
        self.environment = dict(os.environ, TESSERA_DEVICE=device)

    def seconds(self, page: int) -> float:
        done = subprocess.run(self.words + [f"--benchmark_filter=^serving/pages{page}/"], env=self.environment,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr or f"exit code {done.returncode}")
        rows = json.loads(done.stdout)["benchmarks"]
        if not rows or rows[0].get("error_occurred"):
            raise RuntimeError(rows[0]["error_message"] if rows else "has no such benchmark")
        return rows[0]["median_ms"] * 1e-3


class PyTorch:
    def __init__(self, min_time: float, flex: bool):
        import torch

        self.torch, self.min_time, self.flex = torch, min_time, flex

    def timed(self, call) -> float:
        call()
        times, begin = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - begin < self.min_time:
            self.torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(10):
                call()
            self.torch.cuda.synchronize()
            times.append((time.perf_counter() - start) / 10)
        return statistics.median(times)

    def calls(self, page: int) -> dict:
        torch = self.torch
        functional, place = torch.nn.functional, {"device": "cuda", "dtype": torch.float16}
        query = torch.randn(SEQUENCES, HEADS, 1, DIM, **place)
        pool = [torch.randn(SEQUENCES * KEYS // page, page * KV_HEADS * DIM, **place) for _ in range(2)]
        table = torch.randperm(SEQUENCES * KEYS // page, device="cuda")

        def gather() -> list:
            return [pages[table].view(SEQUENCES, KEYS, KV_HEADS, DIM).transpose(1, 2) for pages in pool]

        def attend(keys, values):
            return functional.scaled_dot_product_attention(query, keys, values, enable_gqa=True)

        attention, gathered = torch.nn.attention, gather()
        found = {"gathering alone": gather}
        backends = attention.SDPBackend
        for backend in (backends.CUDNN_ATTENTION, backends.FLASH_ATTENTION, backends.EFFICIENT_ATTENTION):
            def alone(backend=backend):
                with attention.sdpa_kernel(backend):
                    return attend(*gathered)

            def whole(backend=backend):
                with attention.sdpa_kernel(backend):
                    return attend(*gather())

            found[f"{backend.name} of gathered keys"] = alone
            found[f"gathering and {backend.name}"] = whole
        if self.flex:
            from torch.nn.attention.flex_attention import flex_attention

            compiled = torch.compile(flex_attention)
            found["flex_attention of gathered keys"] = lambda: compiled(query, *gathered, enable_gqa=True)
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="tessera_benchmarks")
    parser.add_argument("--device", default="opencl:nvidia", help="of Tessera (default: %(default)s)")
    parser.add_argument("--pages", type=int, nargs="+", default=[16, 64], help="tokens of a page: 16 or 64")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--min-time", type=float, default=0.2,
                        help="seconds of a round of PyTorch's; Tessera's has 0.3 (default: %(default)s)")
    parser.add_argument("--flex", action="store_true")
    arguments = parser.parse_args()
    tessera = Tessera(arguments.program, arguments.device)
    pytorch = PyTorch(arguments.min_time, arguments.flex)
    print(f"{pytorch.torch.cuda.get_device_name()}, PyTorch {pytorch.torch.__version__}")
    for page in arguments.pages:
        calls = {"page_attention": lambda: tessera.seconds(page)}
        calls |= {name: lambda call=call: pytorch.timed(call) for name, call in pytorch.calls(page).items()}
        times = {name: [] for name in calls}
        for _ in range(arguments.rounds):
            for name, call in list(calls.items()):
                try:
                    times[name].append(call())
                except (RuntimeError, OSError) as error:
                    print(f"pages of {page}, {name}: {first_line(error)}")
                    del calls[name]
        own = statistics.median(times["page_attention"]) if times["page_attention"] else None
        for name in calls:
            seconds = statistics.median(times[name])
            ratio = f", {seconds / own:.2f} times as long" if own and name != "page_attention" else ""
            print(f"pages of {page}, {name}: {seconds * 1e3:.3f} ms, {BYTES / seconds * 1e-12:.2f} TB/s{ratio}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
