// SPDX-License-Identifier: Apache-2.0
// What     A recurrence: state = decay * state + key value^T, output = scale state^T query; 16 tokens at a time, or one.
// Who      A work-group is one item. It owns 32 PANELS columns of the state of one sequence and head.
// Memory   Operands once for each block of columns, into private memory as floats; the next chunk's are asked for between
//          the products of this one. The state stays in the first two caches.
// Numerics Float. Decays within a chunk are products of the factors of its tokens, none is divided by.
// Assumes  Operands below 2^31 elements; key_dim is at most KEY_BLOCK, a multiple of 16.
#include "recurrence/cpu/forward.clh"
