#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a file includes what its layer may not. ARCHITECTURE.md has the picture of the layers.

    python3 tools/check_layers.py [root of the repository]
"""
import pathlib
import re
import sys

# A folder of src/ may include itself and these. Headers of include/tessera may be included everywhere.
BELOW = {
    "base": set(),
    "abi": set(),
    "device": {"base"},
    "kernel": {"device", "abi", "base"},
    "selection": {"kernel", "device", "base"},
    "runtime": {"selection", "kernel", "device", "abi", "base"},
    "operations": {"runtime", "kernel", "abi", "base"},
    "interop": {"runtime", "device", "base"},
    "capi": set(),
    "conformance": {"operations", "runtime", "selection", "kernel", "device", "base"},
}
# Folder of a vendor's or another project's headers: the only places that may include it. Headers of interop/ are about
# the application's own objects, and their tests make such objects.
FOREIGN = {
    "CL": ("src/device/opencl/", "include/tessera/interop/opencl.hpp"),
    "vulkan": ("src/device/vulkan/", "include/tessera/interop/vulkan.hpp", "tests/vendors/"),
    "shaderc": ("src/runtime/glsl.cpp",),
    "Eigen": ("src/", "tests/", "benchmarks/", "tools/"),
    "nlohmann": ("src/", "tests/", "benchmarks/", "tools/"),
    "CLI": ("tools/tessera/", "tests/conformance/", "tests/vendors/"),
    "gtest": ("tests/",),
    "gmock": ("tests/",),
    "benchmark": ("benchmarks/",),
}
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
KERNEL_ROOTS = {"cl_kernels": ".cl .clh", "shaders": ".comp .glsl"}


def includes(path):
    """Yields (line number, '<' or '"', included path)."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


class Rooms:
    """The families of CMakeLists.txt, and what their rooms may use."""

    # A sub-room of a core uses the core itself and these sub-rooms.
    BELOW = {"cases": {"oracle"}, "hopper": {"mma"}, "cooperative": {"tile"}}

    def __init__(self, root):
        self.families, self.cores, self.lines = {}, {}, {}
        text = (root / "CMakeLists.txt").read_text(encoding="utf-8")
        for line in re.findall(r"^\s*tessera_add_family\(([^)]*)\)", text, re.M):
            name, *words = line.split()
            lists = {"CORES": [], "OPERATIONS": []}
            for word in words:
                if word in lists:
                    current = lists[word]
                else:
                    current.append(word)
            self.families[name] = lists["CORES"] + lists["OPERATIONS"]
            self.lines[name] = set(lists["CORES"])
            for room in self.families[name]:
                self.cores.setdefault(room, set()).update(lists["CORES"])

    def fault(self, here, included):
        """Why operations/<here> may not include operations/<included>, or None. Both end in a file."""
        user, owner = here[0], included[0]
        if owner == "common":
            return None
        if user == "common":
            return "common belongs to every family and knows none"
        if user != owner and owner not in self.cores.get(user, ()):
            return f"no tessera_add_family() of CMakeLists.txt gives {owner} to {user}"
        if user != owner and included[-1].endswith(".hpp"):
            # A family that is built alone has the cores of its line and no others.
            for family, line in self.lines.items():
                if user in line and owner not in line:
                    return f"the line of {family} in CMakeLists.txt has {user} without {owner}, which it calls"
        if len(included) == 2 or included[1] == "core":  # the core itself, and what it shares with its kernels
            return None
        way = included[1]
        if user != owner:
            return f"{user} may use {owner}, but not its sub-room {way}"
        if len(here) == 2 or here[1] == "core":
            return f"{owner}'s own files may not use its sub-room {way}"
        if here[1] != way and way not in self.BELOW.get(here[1], ()):
            return f"{owner}/{here[1]} may not use {owner}/{way} beside it"
        return None


def src_fault(rooms, here, included):
    """Why src/<here> may not include src/<included>, or None."""
    layer, target = here.parts[0], included.split("/")[0]
    if layer not in BELOW:
        return f"the folder src/{layer} is no known layer; add it to tools/check_layers.py"
    if target != layer and target not in BELOW[layer]:
        return f"{layer} stands below {target} or beside it"
    if target == "operations":
        return rooms.fault(here.parts[1:], included.split("/")[1:]) if layer == "operations" else None
    if layer == "device" and target == "device":
        # Platforms know the interface and not each other.
        platforms = {"opencl", "vulkan", "host"}
        other = included.split("/")[1]
        if other in platforms and other != here.parts[1]:
            return f"device/{here.parts[1]} may not use device/{other}"
    return None


def foreign_fault(name, included):
    folder = included.split("/")[0]
    allowed = FOREIGN.get(folder)
    if "/" in included and allowed and not name.startswith(allowed):
        return f"{folder}/ may be included only by {', '.join(allowed)}"
    return None


def public_fault(name, bracket, included):
    """Public headers know Tessera's public headers and the standard library."""
    if name.startswith("include/tessera/interop/") or included.startswith("tessera/"):
        return None
    if bracket == "<" and "/" not in included and "." not in included:
        return None
    if name.endswith(".h") and included in {"stddef.h", "stdint.h"}:
        return None
    return "a public header may include tessera/ and the standard library only"


def kernel_fault(rooms, root_name, here, included):
    """Kernels include the library, what languages and families share, and of their own family core/ and their room."""
    if included.startswith(("lib/", "abi/", "operations/common/")) or "/" not in included:
        return None
    family, *room = here.parts[:-1]
    where = "/".join([root_name, *here.parts[:-1]])
    parts = included.split("/")[:-1]
    if parts[0] == family:
        inner = parts[1:]
    elif parts[0] == "operations" and parts[1] in rooms.families.get(family, ()):
        # A core's kernels read the constants of the ways that they belong to.
        inner = [] if included.endswith(".def") and room == ["core"] else parts[2:]
    else:
        return f"{where} may not include {included}"
    if inner in ([], ["core"], room):
        return None
    return f"{where} may not include {included}, which lies beside it"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    rooms, faults, files = Rooms(root), [], 0

    def report(name, number, included, why):
        if why:
            faults.append(f'{name}:{number}: includes "{included}": {why}')

    for top in ("include", "src", "tools", "tests", "benchmarks"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in {".h", ".hpp", ".cpp", ".inc"}:
                continue
            files += 1
            name = path.relative_to(root).as_posix()
            for number, bracket, included in includes(path):
                report(name, number, included, foreign_fault(name, included))
                if top == "include":
                    report(name, number, included, public_fault(name, bracket, included))
                elif top == "src" and included.split("/")[0] in BELOW and "/" in included:
                    report(name, number, included, src_fault(rooms, path.relative_to(root / "src"), included))
    for top, suffixes in KERNEL_ROOTS.items():
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in suffixes.split():
                continue
            files += 1
            for number, _, included in includes(path):
                why = kernel_fault(rooms, top, path.relative_to(root / top), included)
                report(path.relative_to(root).as_posix(), number, included, why)

    print("\n".join(faults) if faults else f"{files} files keep to their layers")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
