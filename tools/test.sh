#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds Tessera with all its tests and runs them: the default ones, or all with --full, which takes hours on a processor
# (every configuration, random calls by the thousand, kernels under tools that watch them). Other arguments go to ctest:
# `sh tools/test.sh -L unit`. At the end stands what each family's kernels cost.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
build=$root/build/ci
more=''
if [ "${1:-}" = --full ]; then
  shift
  more='pocl rusticl'
else
  set -- -LE full "$@"
fi

sh "$root/tools/setup.sh"
sh "$root/tools/newer.sh" get glslc || true # without it some variants are left out, and CMake lists them
sh "$root/tools/newer.sh" get lavapipe $more & # without it their tests are skipped
timeout 900 sh "$root/tools/vendors.sh" get & # the same
(cd "$root" && cmake --preset ci) # --preset looks for the presets in the working directory
cmake --build "$build"
wait # for what newer.sh and vendors.sh do beside it
# The tests set the cache directories for themselves (cmake/TesseraTests.cmake); this is for what they may start.
export POCL_CACHE_DIR="$build/test_cache/pocl" TESSERA_CACHE_DIR="$build/test_cache/tessera"
rm -f "$build/ledger.txt"
status=0
ctest --test-dir "$build" -j2 --output-on-failure "$@" || status=$?
if [ -f "$build/ledger.txt" ]; then
  echo "what the kernels of each family cost:"
  sort "$build/ledger.txt" | sed 's/^/  /'
fi
exit $status
