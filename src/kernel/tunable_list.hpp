// SPDX-License-Identifier: Apache-2.0
// For files that fill a list of Tunable from .def files: what their lines mean in C++.
#pragma once

#include "tessera/record.hpp"

#define TUNABLE(id, name, fallback) {id, #name, fallback},
#define CONSTANT(id, name, fallback) {id, #name, fallback, true},
