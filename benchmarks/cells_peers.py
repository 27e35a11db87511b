#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times layers of recurrent cells of `tessera bench` and of PyTorch in turns, on a GPU or on a processor.

    benchmarks/cells_peers.py build/release/tessera                      # the wide layer, NVIDIA GPU through OpenCL
    benchmarks/cells_peers.py build/release/tessera --operation gru --dtype f32 --only b32
    benchmarks/cells_peers.py build/release/tessera --device opencl:cpu --dtype f32 --only b32 --reserve

Each round times Tessera, then PyTorch; medians of the rounds are shown. With --backward it is `lstm_backward`, which computes
forward once more, beside PyTorch's backward alone, and beside its forward and backward. With --reserve it is a step of training:
`lstm`, which leaves its reserve, and `lstm_backward`, which takes it, beside PyTorch's forward that remembers, its backward, and
both. Layers have biases, one direction, and as many features as units. Tessera checks its result before it is timed.
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
from pathlib import Path

SIZES = {"b32_t256_h512": (32, 256, 512), "b64_t512_h1024": (64, 512, 1024)}  # batch, tokens, units: of the bench's table


def tessera_seconds(arguments, case: str, backward: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        command = [arguments.tessera, "bench", arguments.operation + ("_backward" if backward else ""), "--device",
                   arguments.device, "--dtype", arguments.dtype, "--only", case, "--min-time", str(arguments.min_time), "--json",
                   str(file)]
        for name in ("variant", "config"):
            if getattr(arguments, name):
                command += ["--" + name, getattr(arguments, name)]
        run = subprocess.run(command, capture_output=True, text=True, env={"POCL_AFFINITY": "1", **os.environ})
        rows = json.loads(file.read_text())["benchmarks"] if file.exists() else []
    for row in rows:
        if row["case"] == case and not row.get("error_occurred"):
            return row["real_time"] * 1e-9
        print(f"Tessera says {row.get('error_message')}", flush=True)
    print("\n".join((run.stdout + run.stderr).strip().splitlines()[-3:]), flush=True)
    return float("nan")


class PyTorch:
    def __init__(self, arguments, on_gpu: bool, case: str):
        import torch

        self.torch, self.on_gpu, self.min_time = torch, on_gpu, arguments.min_time
        batch, tokens, units = SIZES[case]
        place = "cuda" if on_gpu else "cpu"
        dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[arguments.dtype]
        module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[arguments.operation]
        self.layer = module(units, units, batch_first=True).to(place, dtype)
        self.input = torch.randn(batch, tokens, units, device=place, dtype=dtype, requires_grad=arguments.backward or arguments.reserve)
        self.gradient = torch.randn(batch, tokens, units, device=place, dtype=dtype)

    def forward(self):
        with self.torch.no_grad():
            self.layer(self.input)

    def remembering(self):
        self.layer(self.input)

    def both(self):
        self.layer(self.input)[0].backward(self.gradient)

    def once(self, call, calls: int) -> float:
        if not self.on_gpu:
            begin = time.perf_counter()
            call()
            return time.perf_counter() - begin
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / calls

    def backward_alone(self) -> float:
        """Of a backward behind a forward that is not timed."""
        output = self.layer(self.input)[0]
        if self.on_gpu:
            self.torch.cuda.synchronize()
        return self.once(lambda: output.backward(self.gradient), 1)

    def seconds(self, measure) -> float:
        times, warm = [], time.perf_counter() + 0.1
        until = warm + self.min_time
        while time.perf_counter() < until or len(times) < 3:
            seconds = measure()
            if time.perf_counter() > warm:
                times.append(seconds)
        return statistics.median(times)


def training_step(arguments, peer: PyTorch, case: str):
    ours, theirs = ([], [], []), ([], [], [])  # forward, backward, both
    for _ in range(arguments.rounds):
        forward, backward = (tessera_seconds(arguments, case + "_reserve", back) for back in (False, True))
        for times, seconds in zip(ours, (forward, backward, forward + backward)):
            times.append(seconds)
        theirs[0].append(peer.seconds(lambda: peer.once(peer.remembering, 5)))
        theirs[1].append(peer.seconds(peer.backward_alone))
        theirs[2].append(peer.seconds(lambda: peer.once(peer.both, 5)))
    for what, own, other in zip(("forward", "backward", "both"), ours, theirs):
        mine, peers = statistics.median(own), statistics.median(other)
        print(f"{arguments.operation} {arguments.dtype} {case} {arguments.variant or ''} {what} with reserve {1e3 * mine:.3f} ms "
              f"({', '.join(f'{1e3 * each:.3f}' for each in own)}); PyTorch {1e3 * peers:.3f} ms, {peers / mine:.3f} x", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tessera", help="the tessera program")
    parser.add_argument("--device", default="opencl:nvidia", help="of Tessera (default: opencl:nvidia)")
    parser.add_argument("--operation", choices=["lstm", "gru", "rnn"], default="lstm")
    parser.add_argument("--dtype", choices=["f32", "f16", "bf16"], default="f16")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--reserve", action="store_true", help="both ways, what forward leaves to backward kept")
    parser.add_argument("--variant", help="this variant instead of the chosen one")
    parser.add_argument("--config", help="this configuration of the variant")
    parser.add_argument("--only", default="b64", help="only sizes whose names contain this (default: b64)")
    parser.add_argument("--min-time", type=float, default=0.5, help="seconds for each measurement")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    on_gpu = "cpu" not in arguments.device
    for case in (case for case in SIZES if arguments.only in case):
        try:
            peer = PyTorch(arguments, on_gpu, case)
        except Exception as error:  # an ImportError, or no GPU
            print(f"PyTorch can't be timed: {type(error).__name__}: {error}")
            return 1
        if arguments.reserve:
            training_step(arguments, peer, case)
            continue
        ours, theirs, alone = [], [], []
        for _ in range(arguments.rounds):
            ours.append(tessera_seconds(arguments, case, arguments.backward))
            call = peer.both if arguments.backward else peer.forward
            theirs.append(peer.seconds(lambda: peer.once(call, 5)))
            if arguments.backward:
                alone.append(peer.seconds(peer.backward_alone))
        own = statistics.median(ours)
        text = f"{1e3 * statistics.median(theirs):.3f} ms, {statistics.median(theirs) / own:.3f} x"
        if alone:
            text += f" (backward alone {1e3 * statistics.median(alone):.3f} ms, {statistics.median(alone) / own:.3f} x)"
        what = arguments.operation + ("_backward" if arguments.backward else "")
        print(f"{what} {arguments.dtype} {case} {arguments.variant or ''} {1e3 * own:.3f} ms "
              f"({', '.join(f'{1e3 * each:.3f}' for each in ours)}); PyTorch {text}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
