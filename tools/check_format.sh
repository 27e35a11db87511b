#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when a C++ file differs from what clang-format makes of it; `sh tools/check_format.sh --fix` rewrites them.
# Other versions of clang-format break lines elsewhere, so only version 14 is asked; 77 = there is none.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)

for tool in clang-format-14 clang-format; do
  if "$tool" --version 2> /dev/null | grep -q 'version 14\.'; then
    if [ "${1:-}" = --fix ]; then
      set -- -i
    else
      set -- --dry-run -Werror
    fi
    cd "$root"
    exec find include src tests tools benchmarks examples \
      \( -name '*.hpp' -o -name '*.cpp' -o -path 'src/*.h' \) -exec "$tool" --style=file "$@" {} +
  fi
done
echo "tools/check_format.sh: clang-format 14 was not found; nothing was checked" >&2
exit 77
