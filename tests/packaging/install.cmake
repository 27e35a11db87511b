# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=<build dir> -DPREFIX=<install dir> -DCONFIG=<config> -P install.cmake
# A fresh install tree: what an earlier version installed must not help.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" --config "${CONFIG}"
                COMMAND_ERROR_IS_FATAL ANY)
