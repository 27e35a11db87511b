#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a file of code is longer than people read at once: 500 lines, whatever its language.

    python3 tools/check_sizes.py [root of the repository]
"""
import pathlib
import sys

LIMIT = 500
FOLDERS = (".", "benchmarks", "cl_kernels", "cmake", "examples", "include", "packaging", "shaders", "src", "tests", "tools")
SUFFIXES = {".c", ".cl", ".clh", ".cmake", ".comp", ".cpp", ".def", ".glsl", ".h", ".hpp", ".in", ".inc", ".py", ".sh", ".txt"}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    files, faults = 0, []
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("*" if folder == "." else "**/*")):
            if path.suffix not in SUFFIXES or not path.is_file() or "build" in path.relative_to(root).parts:
                continue
            files += 1
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > LIMIT:
                faults.append(f"{path.relative_to(root).as_posix()}: {lines} lines; split it by what its parts mean")
    print("\n".join(faults) if faults else f"{files} files of at most {LIMIT} lines")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
