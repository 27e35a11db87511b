// SPDX-License-Identifier: Apache-2.0
// What     A delta rule: state = decay * state, state += beta key (value - state^T key)^T, output = scale state^T query; 16
//          tokens at a time, or one.
// Who      A work-group is one item. It owns 32 PANELS columns of the state of one sequence and head.
// Memory   Operands once for each block of columns, into private memory as floats; the state stays in the first two caches.
// Numerics Float. Values become what their tokens add, by forward substitution; then it is recurrence/cpu/forward.
// Assumes  Operands below 2^31 elements; key_dim is at most KEY_BLOCK, a multiple of 16.
#define RECUR_DELTA 1
#include "recurrence/cpu/forward.clh"
