#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times attention in PyTorch's GPU backends, cuDNN and FlashAttention-2, beside `tessera bench` on the same NVIDIA GPU.

    benchmarks/attention_gpu.py build/release/tessera
    benchmarks/attention_gpu.py build/release/tessera --dtype bf16 --only causal --min-time 1
    benchmarks/attention_gpu.py build/release/tessera --backward

Both sides report medians by the device's own clock, of the same shapes in the layout that each likes best, on normal
numbers (zeros run faster), and count 4 * batch * heads * dim operations for every key that a row sees, 2.5 times as many
backward. Tessera checks its result before it is timed. Shares are of 902 TFLOP/s, what the matrix unit of an H200
reached on random data in a loop that does nothing else; on other devices no share is given. Needs PyTorch with CUDA; a
backend that refuses a shape is named.
"""
from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

PEAK_OF = {"NVIDIA H200": 902e12}
TOKENS, COLUMNS = 16384, 2048  # batch * seq and heads * dim of every shape


@dataclass(frozen=True)
class Case:
    dim: int
    seq: int
    causal: bool
    backward: bool

    @property
    def name(self) -> str:
        return f"d{self.dim}_s{self.seq}" + ("_causal" if self.causal else "") + ("_backward" if self.backward else "")

    @property
    def shape(self) -> tuple:  # batch, seq, heads, dim
        return TOKENS // self.seq, self.seq, COLUMNS // self.dim, self.dim

    @property
    def words(self) -> str:  # of tessera bench --shapes
        batch, seq, heads, _ = self.shape
        shape = "x".join(map(str, self.shape))
        words = f"query={shape},key={shape},value={shape}"
        if self.backward:
            words += f",output={shape},output_gradient={shape},log_sum_exp={batch}x{heads}x{seq}"
        return words

    def flops(self) -> float:
        batch, seq, heads, dim = self.shape
        pairs = seq * (seq + 1) / 2 if self.causal else seq * seq
        return (10.0 if self.backward else 4.0) * batch * heads * dim * pairs


def cases_of(backward: bool) -> list:
    return [Case(dim, seq, causal, backward) for dim in (64, 128) for seq in (1024, 4096, 16384)
            for causal in (False, True)]


def run_tessera(arguments, cases) -> dict:
    """Seconds, or the reason why there are none, of each case."""
    found = {}
    for causal in (False, True):
        chosen = [case for case in cases if case.causal == causal]
        if not chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bench.json"
            operation = "flash_attention_backward" if arguments.backward else "flash_attention"
            command = [arguments.tessera, "bench", operation, "--device", arguments.device, "--dtype",
                       arguments.dtype, "--min-time", str(arguments.min_time), "--json", str(file)]
            if arguments.variant:
                command += ["--variant", arguments.variant]
            command += ["--set", f"causal={str(causal).lower()}", "--shapes"] + [case.words for case in chosen]
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
    try:
        torch = PyTorch()
    except Exception as error:  # an ImportError, or no GPU
        print(f"PyTorch can't be timed: {type(error).__name__}: {error}")
        return 1
    peak = next((value for name, value in PEAK_OF.items() if torch.device.startswith(name)), None)
    print(f"{torch.device}, {torch.version}, {arguments.dtype}, batch * seq {TOKENS}, heads * dim {COLUMNS}")
    print("x = how many times as long as Tessera the peer takes\n")
    ours = run_tessera(arguments, cases)
    for case in cases:
        known = not isinstance(ours[case], str)
        seconds, variant = ours[case] if known else (ours[case], "")
        print(case.name)
        print(row_text("Tessera " + variant, seconds, case, peak, ""))
        for backend in ("cuDNN", "FlashAttention-2"):
            theirs = torch.seconds(backend, case, arguments.dtype, arguments.min_time)
            ratio = f"{theirs / seconds:6.2f} x" if known and not isinstance(theirs, str) else ""
            print(row_text(backend, theirs, case, peak, ratio), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
