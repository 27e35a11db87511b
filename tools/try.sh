#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds Tessera and shows it at work on every device of this machine. Arguments go to `tessera try`.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
build=$root/build/release

sh "$root/tools/setup.sh"
sh "$root/tools/newer.sh" get glslc || true # without it some variants are left out, and CMake lists them
if [ ! -f "$build/build.ninja" ]; then
  (cd "$root" && cmake --preset release) # --preset looks for the presets in the working directory
fi
cmake --build "$build" --target tessera_tool
exec "$build/tessera" try "$@"
