#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that Tessera is built, run and tested with. A complete machine needs no network and no
# root; otherwise it needs root or sudo, and without them prints the command to run and fails.
set -eu

# compiler and build; backends; header-only libraries; tests; devices without a GPU; checks
packages="
g++ cmake ninja-build pkg-config
ocl-icd-opencl-dev opencl-clhpp-headers libvulkan-dev glslc spirv-tools libshaderc-dev
libeigen3-dev nlohmann-json3-dev libcli11-dev libxxhash-dev
libgtest-dev libgmock-dev libbenchmark-dev
pocl-opencl-icd mesa-vulkan-drivers
clang-14 clang-format-14 clang-tidy-14 vulkan-validationlayers oclgrind python3 abigail-tools lintian
"

if ! command -v dpkg-query > /dev/null 2>&1; then
  echo "tools/setup.sh: this is no Debian system, so nothing is installed; what it would be on Debian:" $packages >&2
  exit 0
fi

missing=
for package in $packages; do
  # One line per architecture that dpkg knows the package for.
  dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2> /dev/null | grep -qx installed ||
    missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=
elif command -v sudo > /dev/null 2>&1 && { sudo -n true 2> /dev/null || [ -t 0 ]; }; then
  as_root=sudo
else
  echo "tools/setup.sh: some packages are missing; run this as root, then start again:" >&2
  echo "apt-get install -y --no-install-recommends$missing" >&2
  exit 1
fi

echo "tools/setup.sh: installing$missing"
# `sudo env` rather than `VAR=value sudo`: sudo drops the caller's environment.
if ! { $as_root env DEBIAN_FRONTEND=noninteractive apt-get update &&
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; }; then
  echo "tools/setup.sh: apt-get failed, see above; the command was:" >&2
  echo "apt-get update && apt-get install -y --no-install-recommends$missing" >&2
  exit 1
fi
