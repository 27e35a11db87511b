#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times attention in PyTorch's GPU backends, cuDNN and FlashAttention-2, beside `tessera bench` on the same NVIDIA GPU.

    benchmarks/attention_gpu.py build/release/tessera
    benchmarks/attention_gpu.py build/release/tessera --dtype bf16 --only causal --min-time 1
    benchmarks/attention_gpu.py build/release/tessera --backward

Both sides report medians by the device's own clock, of the same shapes in the layout that each likes best, on normal
numbers (zeros run faster), and count 4 * batch * heads * dim operations for every key that a row sees, 2.5 times as many
backward. Tessera checks its result before it is timed. Options (grouped heads, a window, a soft cap, packed sequences) are
set beside Tessera's own plain kernel: time for each tile of 128 x 128 of which a row sees a key. Shares are of 902 TFLOP/s,
what the matrix unit of an H200 reached on random data in a loop that does nothing else; on other devices no share is given.
Needs PyTorch with CUDA; a backend that refuses a shape is named.
"""
from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

PEAK_OF = {"NVIDIA H200": 902e12}
TOKENS, COLUMNS = 16384, 2048  # batch * seq and heads * dim of every shape


TILE = 128


@dataclass(frozen=True)
class Case:
    dim: int
    seq: int
    causal: bool
    group: int = 1  # query heads to a key head
    window: int = 0  # keys that a row sees before its own; 0 = all
    cap: int = 0
    packed: int = 0  # sequences in the tokens of one batch, each of `seq`
    backward: bool = False

    @property
    def name(self) -> str:
        parts = [f"d{self.dim}", f"s{self.seq}", "causal" if self.causal else ""]
        parts += [f"{word}{value}" for word, value in (("gqa", self.group if self.group > 1 else 0), ("window", self.window),
                                                       ("cap", self.cap), ("packed", self.packed)) if value]
        parts.append("backward" if self.backward else "")
        return "_".join(filter(None, parts))

    @property
    def plain(self) -> Case:  # what an option is compared with
        return Case(self.dim, self.seq, self.causal, backward=self.backward)

    @property
    def shape(self) -> tuple:  # batch, seq, heads, dim
        return TOKENS // self.seq, self.seq, COLUMNS // self.dim, self.dim

    @property
    def words(self) -> str:  # of tessera bench --shapes
        batch, seq, heads, dim = self.shape
        rows = f"{batch * seq}" if self.packed else f"{batch}x{seq}"
        query, key = f"{rows}x{heads}x{dim}", f"{rows}x{heads // self.group}x{dim}"
        # Made-up offsets have one empty sequence among those of equal length.
        offsets = "".join(f",cum_seqlens_{side}={self.packed + 2}" for side in "qk") if self.packed else ""
        words = f"query={query},key={key},value={key}{offsets}"
        if self.backward:
            words += f",output={query},output_gradient={query},log_sum_exp={batch}x{heads}x{seq}"
        return words

    @property
    def options(self) -> tuple:  # of tessera bench --set
        options = [f"causal={str(self.causal).lower()}"]
        if self.window:
            options.append(f"sliding_window={self.window},{0 if self.causal else self.window}")
        if self.cap:
            options.append(f"logits_soft_cap={self.cap}")
        return tuple(options)

    def flops(self) -> float:
        batch, seq, heads, dim = self.shape
        return (10.0 if self.backward else 4.0) * batch * heads * dim * sum(self.last(row) - self.first(row) + 1 for row in range(seq))

    def tiles(self) -> int:
        batch, seq, heads, _ = self.shape
        return batch * heads * sum(self.last(min(row + TILE, seq) - 1) // TILE - self.first(row) // TILE + 1
                                   for row in range(0, seq, TILE))

    def first(self, row: int) -> int:  # key that the row sees
        return max(row - self.window, 0) if self.window else 0

    def last(self, row: int) -> int:
        return row if self.causal else min(row + self.window, self.seq - 1) if self.window else self.seq - 1


CASES = [Case(dim, seq, causal) for dim in (64, 128, 256) for seq in (1024, 4096, 16384) for causal in (False, True)]
OPTIONS = [case for dim in (64, 128) for case in (
    Case(dim, 16384, False, group=4), Case(dim, 16384, True, group=4), Case(dim, 16384, True, window=1024),
    Case(dim, 16384, False, cap=30), Case(dim, 16384, True, cap=30), Case(dim, 4096, False, packed=4),
    Case(dim, 4096, True, packed=4), Case(dim, 1024, True, packed=16))]


def cases_of(backward: bool) -> list:
    return [replace(case, backward=True) for case in CASES] if backward else CASES + OPTIONS


def run_tessera(arguments, cases) -> dict:
    """Seconds, or the reason why there are none, of each case."""
    found = {}
    for options in sorted({case.options for case in cases}):
        chosen = [case for case in cases if case.options == options]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bench.json"
            operation = "flash_attention_backward" if arguments.backward else "flash_attention"
            command = [arguments.tessera, "bench", operation, "--device", arguments.device, "--dtype",
                       arguments.dtype, "--min-time", str(arguments.min_time), "--json", str(file)]
            if arguments.variant:
                command += ["--variant", arguments.variant]
            command += [word for option in options for word in ("--set", option)]
            command += ["--shapes"] + [case.words for case in chosen]
            run = subprocess.run(command, capture_output=True, text=True)
            rows = json.loads(file.read_text())["benchmarks"] if file.exists() else []
            lines = (run.stderr.strip() or run.stdout.strip()).splitlines()
        for case in chosen:
            row = next((row for row in rows if row["case"] == case.words), None)
            if row is None:
                found[case] = lines[-1] if lines else f"exit code {run.returncode}"
            elif row.get("error_occurred"):
                found[case] = "failed: " + row.get("error_message", "").split("\n")[0]
            else:
                found[case] = (row["real_time"] * 1e-9, row["variant"])
    return found


class PyTorch:
    def __init__(self):
        import torch

        self.torch = torch
        self.device = torch.cuda.get_device_name(0)
        self.version = f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"

    def seconds(self, backend: str, case: Case, dtype: str, min_time: float):
        """The median, or the reason why there is none."""
        torch = self.torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        batch, seq, heads, dim = case.shape
        kind = {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]
        # [batch, seq, heads, dim] in memory, as transformers leave it.
        q, k, v, gradient = (torch.randn(batch, seq, heads, dim, device="cuda", dtype=kind).transpose(1, 2)
                             for _ in range(4))
        for tensor in (q, k, v):
            tensor.requires_grad_(case.backward)

        def forward():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=case.causal)

        chosen = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "FlashAttention-2": SDPBackend.FLASH_ATTENTION}[backend]
        times = []
        try:
            with torch.set_grad_enabled(case.backward), sdpa_kernel([chosen]):
                output = forward()
                for run in range(1000):
                    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    begin.record()
                    if case.backward:
                        torch.autograd.grad(output, (q, k, v), gradient, retain_graph=True)
                    else:
                        forward()
                    end.record()
                    end.synchronize()
                    if run >= 3:  # after warming up
                        times.append(begin.elapsed_time(end) * 1e-3)
                    if len(times) >= 5 and sum(times) >= min_time:
                        break
        except Exception as error:  # a backend may refuse a shape or a type in any way
            return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
        return statistics.median(times)


def row_text(who: str, seconds, case: Case, peak, ratio: str) -> str:
    if isinstance(seconds, str):
        return f"    {who:<18} {seconds}"
    rate = case.flops() / seconds
    share = f"{100 * rate / peak:5.1f} % of {peak / 1e12:.0f}" if peak else ""
    return f"    {who:<18} {1e3 * seconds:9.3f} ms {rate / 1e12:7.1f} TFLOP/s {share} {ratio}".rstrip()


def tile_text(case: Case, ours: dict) -> str:
    if isinstance(ours[case], str) or isinstance(ours[case.plain], str):
        return ""
    of_tile, of_plain = (ours[which][0] / which.tiles() for which in (case, case.plain))
    return f"{of_tile / of_plain:6.2f} of the plain kernel's time for a tile"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tessera", help="the tessera program")
    parser.add_argument("--device", default="opencl:nvidia", help="of Tessera (default: opencl:nvidia)")
    parser.add_argument("--dtype", choices=["f16", "bf16"], default="f16")
    parser.add_argument("--variant", help="this variant instead of the chosen one")
    parser.add_argument("--backward", action="store_true", help="the backward pass")
    parser.add_argument("--only", help="only cases whose name contains this")
    parser.add_argument("--min-time", type=float, default=0.3, help="seconds for each measurement")
    arguments = parser.parse_args()
    cases = [case for case in cases_of(arguments.backward) if not arguments.only or arguments.only in case.name]
    if not cases:
        parser.error("no case has such a name")
    measured = list(dict.fromkeys([case.plain for case in cases] + cases))
    try:
        torch = PyTorch()
    except Exception as error:  # an ImportError, or no GPU
        print(f"PyTorch can't be timed: {type(error).__name__}: {error}")
        return 1
    peak = next((value for name, value in PEAK_OF.items() if torch.device.startswith(name)), None)
    print(f"{torch.device}, {torch.version}, {arguments.dtype}, batch * seq {TOKENS}, heads * dim {COLUMNS}")
    print("x = how many times as long as Tessera the peer takes\n")
    ours = run_tessera(arguments, measured)
    for case in cases:
        known = not isinstance(ours[case], str)
        seconds, variant = ours[case] if known else (ours[case], "")
        print(case.name)
        if case != case.plain:
            print(row_text("Tessera " + variant, seconds, case, peak, tile_text(case, ours)), flush=True)
            continue
        print(row_text("Tessera " + variant, seconds, case, peak, ""))
        for backend in ("cuDNN", "FlashAttention-2"):
            theirs = torch.seconds(backend, case, arguments.dtype, arguments.min_time)
            ratio = f"{theirs / seconds:6.2f} x" if known and not isinstance(theirs, str) else ""
            print(row_text(backend, theirs, case, peak, ratio), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
