// SPDX-License-Identifier: Apache-2.0
// Errors that kernels find in the elements of operands: ErrorKind in tessera/record.hpp.
#ifndef TESSERA_LIB_ERRORS_GLSL
#define TESSERA_LIB_ERRORS_GLSL

// `words`: a buffer of uint. `first`: the argument that Pass::errors_at tells of. `error`: the number
// of its kind in the record. Each word keeps the smallest index.
#define RAISE_ERROR(words, first, error, index) atomicMin(words[(first) + (error)], min((index), 0xfffffffeu))

#endif  // TESSERA_LIB_ERRORS_GLSL
