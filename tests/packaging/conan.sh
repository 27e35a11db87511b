#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# conan.sh <source dir> <work dir>: makes the Conan package, static and shared, of one family and unoptimised for time, and
# runs the program of its test. Takes nothing from a remote. 77 = there is no Conan 2 (PyPI: conan).
set -eu
if ! conan --version 2> /dev/null | grep -q 'version 2'; then
  echo "conan.sh: Conan 2 was not found (PyPI: conan); no package was made" >&2
  exit 77
fi
rm -rf "$2"
mkdir -p "$2"
export CONAN_HOME="$2/home"
conan profile detect > /dev/null 2>&1
for shared in ${SHARED:-False True}; do
  conan create "$1/packaging" --no-remote -s build_type=Debug -s compiler.cppstd=20 \
    -o "tessera/*:operations=pooling" -o "tessera/*:shared=$shared" -c "tools.build:cxxflags=['-O0']" \
    -c "tools.cmake.cmake_layout:test_folder=$2/test" -c tools.cmake.cmaketoolchain:user_presets= \
    > "$2/create.$shared.log" 2>&1 || { tail -n 60 "$2/create.$shared.log"; exit 1; }
  grep -h "^tessera .* on " "$2/create.$shared.log"
done
