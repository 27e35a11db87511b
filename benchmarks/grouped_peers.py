#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times products of groups of rows of `tessera bench` and of PyTorch's grouped product in turns, as matmul_peers.py does.

    benchmarks/grouped_peers.py build/release/tessera              # every row, NVIDIA GPU through OpenCL
    benchmarks/grouped_peers.py build/release/tessera --only g8    # those of eight groups

Rows are named by what is computed: nn and nt, output = lhs rhs with matrices [k, n] or [n, k]; dlhs and drhs, the gradients.
PyTorch's groups have the sizes that Tessera's benchmark draws. Tessera makes its operands on the host: rows of 64 groups take
minutes and 40 GB there.
"""
from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import matmul_peers

MASK = (1 << 64) - 1


def draws(seed: int):
    """The numbers of std::mt19937_64."""
    state = [seed]
    for i in range(1, 312):
        state.append((6364136223846793005 * (state[-1] ^ state[-1] >> 62) + i) & MASK)
    while True:
        for i in range(312):
            y = state[i] & 0xFFFFFFFF80000000 | state[(i + 1) % 312] & 0x7FFFFFFF
            state[i] = state[(i + 156) % 312] ^ y >> 1 ^ (0xB5026F5AA96619E9 if y & 1 else 0)
        for y in list(state):
            y ^= y >> 29 & 0x5555555555555555
            y ^= y << 17 & 0x71D67FFFEDA60000
            y ^= y << 37 & 0xFFF7EEE000000000
            yield y ^ y >> 43


def ragged_sizes(rows: int, groups: int) -> list:
    """Of src/operations/grouped_core/cases.cpp with the seed of a benchmark, by the distribution of libstdc++."""
    generator, cuts = draws(1000003), [0, rows]
    for group in range(1, groups):
        cuts.append(cuts[-1] if group % 3 == 0 else next(generator) * (rows + 1) >> 64)
    cuts.sort()
    return [end - first for first, end in zip(cuts, cuts[1:])]


@dataclass(frozen=True)
class Grouped(matmul_peers.Case):
    groups: int = 1

    @property
    def name(self) -> str:
        return f"{self.dtype}_{self.order}_{self.m}x{self.n}x{self.k}_g{self.groups}"

    @property
    def plain(self) -> Grouped:
        return self

    @property
    def rhs(self) -> tuple:
        return (self.groups, self.n, self.k) if self.order == "nt" else (self.groups, self.k, self.n)

    @property
    def words(self) -> str:
        shapes = {"lhs": (self.m, self.k), "rhs": self.rhs, "group_sizes": (self.groups,)}
        if self.order in ("dlhs", "drhs"):
            shapes["grad_output"] = (self.m, self.n)
            shapes["grad_" + self.order[1:]] = shapes[self.order[1:]]
        return ",".join(f"{name}=" + "x".join(map(str, shape)) for name, shape in shapes.items())

    @property
    def options(self) -> tuple:
        return ("transpose_rhs=true",) if self.order == "nt" else ()

    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k

    def bytes(self) -> float:
        return 2.0 * (self.m * self.k + self.groups * self.k * self.n + self.m * self.n)


class PyTorch(matmul_peers.PyTorch):
    def call(self, case: Grouped):
        torch = self.torch
        ends = torch.tensor(ragged_sizes(case.m, case.groups), device=self.place).cumsum(0).to(torch.int32)
        rows = self.operand((case.m, case.k), case.dtype)
        if case.order in ("nn", "nt"):
            rhs = self.operand(case.rhs, case.dtype)
            left, right = rows, rhs.transpose(1, 2) if case.order == "nt" else rhs
        else:
            gradient = self.operand((case.m, case.n), case.dtype)
            left, right = ((rows.t(), gradient) if case.order == "drhs" else
                           (gradient, self.operand(case.rhs, case.dtype).transpose(1, 2)))
        return lambda: torch._grouped_mm(left, right, offs=ends)


def cases() -> list:
    sizes = ((16384, 4096, 7168, 8), (32768, 7168, 2048, 32), (65536, 4096, 7168, 64))
    return [Grouped("bf16", m, n, k, order=order, groups=groups,
                    operation="grouped_matmul" + ("_backward" if order[0] == "d" else ""))
            for order in ("nn", "nt", "dlhs", "drhs") for m, n, k, groups in sizes]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    matmul_peers.add_options(parser)
    arguments = parser.parse_args()
    return matmul_peers.compare(arguments, cases(), PyTorch, matmul_peers.is_gpu(arguments.device))


if __name__ == "__main__":
    sys.exit(main())
