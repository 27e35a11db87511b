#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pkg_config.sh <example folder> <installed lib folder> <program>: builds and runs the pkg-config example.
set -eu
export PKG_CONFIG_PATH="$2/pkgconfig"
sh "$1/build.sh" "$3"
LD_LIBRARY_PATH=$2 exec "$3"
