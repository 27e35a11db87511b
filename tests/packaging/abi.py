#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the binary interface that tessera.h declares with the dump kept here: abi.py INCLUDE_DIR [--renew].

Functions and structs may be added within a soname, and a struct with struct_size may grow at its end; then the dump is
renewed, in the same commit, with --renew. Anything else needs another soname. Needs a C compiler and abidw and abidiff
of libabigail (Debian: abigail-tools); 77 = they are not here, or the machine is not the one of the dump.
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DUMP = os.path.join(HERE, "tessera_c.abi")


def definitions(header):
    """Each function that the header declares, with a body: what the types of a library are read from."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    declared = re.findall(r"TESSERA_API ([^;]+);", text)
    return '#include "tessera/tessera.h"\n' + "".join("%s { __builtin_trap(); }\n" % each for each in declared), declared


def main():
    include, renew = sys.argv[1], "--renew" in sys.argv[2:]
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    missing = [name for name, found in (("abidw", shutil.which("abidw")), ("abidiff", shutil.which("abidiff")),
                                        ("a C compiler", compiler)) if not found]
    if missing or platform.machine() != "x86_64":
        print("skipped: " + (", ".join(missing) + " (Debian: abigail-tools) not found" if missing else
                             "the dump is of x86_64"))
        return 77
    with open(os.path.join(include, "tessera", "tessera.h"), encoding="utf-8") as file:
        source, declared = definitions(file.read())
    with open(os.path.join(HERE, "c_exports.txt"), encoding="utf-8") as file:
        exported = set(file.read().split())
    names = {re.search(r"(tessera_\w+)\(", each).group(1) for each in declared}
    if names != exported:
        print("tessera.h and c_exports.txt differ in", sorted(names ^ exported))
        return 1
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "libtessera.so")
        subprocess.run([compiler, "-x", "c", "-std=c99", "-g", "-O0", "-fPIC", "-shared", "-I", include, "-o", library,
                        "-"], input=source, text=True, check=True)
        if renew:
            subprocess.run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file", DUMP,
                            library], check=True)
            return 0
        result = subprocess.run(["abidiff", "--no-show-locs", DUMP, library], check=False)
        if result.returncode:
            print("tessera.h is not what tests/packaging/tessera_c.abi holds. If it has only grown, renew the dump: "
                  "tests/packaging/abi.py include --renew")
        return 1 if result.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
