#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy 14 (.clang-tidy; findings are errors) over the library and the tool. Takes minutes, so it is run on demand and not by ctest:
#   sh tools/check_tidy.sh [build directory with compile_commands.json; build/ci] [file...]
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
build=${1:-$root/build/ci}
[ $# -eq 0 ] || shift
if [ ! -f "$build/compile_commands.json" ]; then
  echo "tools/check_tidy.sh: $build has no compile_commands.json; run 'cmake --preset ci' first" >&2
  exit 1
fi
tool=$(command -v clang-tidy-14 || command -v clang-tidy) || {
  echo "tools/check_tidy.sh: clang-tidy was not found" >&2
  exit 1
}
if [ $# -gt 0 ]; then
  printf '%s\0' "$@"
else
  # Only what this build compiles: a backend that is switched off has no entry.
  find "$root/src" "$root/tools" -name '*.cpp' -print | sort | while IFS= read -r file; do
    if grep -qF "\"$file\"" "$build/compile_commands.json"; then printf '%s\0' "$file"; fi
  done
fi | xargs -0 -n 1 -P "$(nproc)" "$tool" -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option 2> /dev/null
