#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packages.sh <cpack> <build dir> <work dir>: makes the Debian packages, looks at them with lintian where there is one, and
# runs the tool from where they were unpacked. gzip, for time. 77 = this is no Debian.
set -eu
if ! command -v dpkg-deb > /dev/null || ! command -v dpkg-shlibdeps > /dev/null; then
  echo "packages.sh: dpkg-dev was not found; no package was made" >&2
  exit 77
fi
rm -rf "$3"
mkdir -p "$3/unpacked"
(cd "$2" && "$1" -G DEB -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$3" > "$3/cpack.log" 2>&1) || { cat "$3/cpack.log"; exit 1; }
for package in "$3"/*.deb; do
  dpkg-deb -f "$package" Package Version Depends
  dpkg-deb -x "$package" "$3/unpacked"
  if command -v lintian > /dev/null; then
    lintian --allow-root --no-cfg --fail-on error "$package"
  else
    echo "packages.sh: lintian was not found; it has not looked at $(basename "$package")"
  fi
done
test -f "$3/unpacked/usr/include/tessera/tessera.h"
test -f "$(find "$3/unpacked/usr" -name tesseraConfig.cmake)"
if [ -x "$3/unpacked/usr/bin/tessera" ]; then
  LD_LIBRARY_PATH="$(dirname "$(find "$3/unpacked/usr" -name 'libtessera.*' | head -n 1)")" \
    "$3/unpacked/usr/bin/tessera" devices
fi
