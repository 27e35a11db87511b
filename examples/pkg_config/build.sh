#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds main.cpp without CMake; PKG_CONFIG_PATH names <prefix>/lib/pkgconfig unless that is a system directory:
#   PKG_CONFIG_PATH=... sh build.sh [output]
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
# Unquoted, because pkg-config and CXXFLAGS hold several words.
${CXX:-c++} -std=c++20 ${CXXFLAGS:-} "$here/main.cpp" -o "${1:-grouped}" $(pkg-config --cflags --libs tessera)
