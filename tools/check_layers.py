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
    "runtime": {"selection", "kernel", "device", "base"},
    "operations": {"runtime", "kernel", "abi", "base"},
    "conformance": {"operations", "runtime", "selection", "kernel", "device", "base"},
}
# Folder of a vendor's or another project's headers: the only places that may include it.
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


def is_shared_operations_folder(root, name):
    """Code that several operations use, and that is no operation itself."""
    folder = root / "src" / "operations" / name
    return folder.is_dir() and not (folder / "operation.cpp").exists()


def src_fault(root, here, included):
    """Why src/<here> may not include src/<included>, or None."""
    layer, target = here.parts[0], included.split("/")[0]
    if layer not in BELOW:
        return f"the folder src/{layer} is no known layer; add it to tools/check_layers.py"
    if target != layer and target not in BELOW[layer]:
        return f"{layer} stands below {target} or beside it"
    if target == "operations":
        owner, user = included.split("/")[1], "/".join(here.parts[:-1])
        if user != f"operations/{owner}" and not is_shared_operations_folder(root, owner):
            return f"{user} may not use the inside of operation {owner}"
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
    return "a public header may include tessera/ and the standard library only"


def kernel_fault(root_name, here, included):
    """Kernels include their own family, the library, and what the languages share."""
    if included.startswith(("lib/", "abi/", "operations/", f"{here.parts[0]}/")) or "/" not in included:
        return None
    return f"{root_name}/{here.parts[0]} may not include {included}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    faults, files = [], 0

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
                    report(name, number, included, src_fault(root, path.relative_to(root / "src"), included))
    for top, suffixes in KERNEL_ROOTS.items():
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in suffixes.split():
                continue
            files += 1
            for number, _, included in includes(path):
                why = kernel_fault(top, path.relative_to(root / top), included)
                report(path.relative_to(root).as_posix(), number, included, why)

    print("\n".join(faults) if faults else f"{files} files keep to their layers")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
