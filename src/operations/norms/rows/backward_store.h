// SPDX-License-Identifier: Apache-2.0
// Where a gradient of s goes. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_NORMS_BACKWARD_STORE_H
#define TESSERA_OPERATIONS_NORMS_BACKWARD_STORE_H

// Of a chunk.
FUNCTION void norm_store_chunk(NORM_PARAMETERS FLOAT4 first, FLOAT4 second, INDEX dsum, INDEX dx,
                               INDEX dresidual, INDEX floats, u32 left) {
  if (NORM_HAS(NORM_SUM)) {
    const UINT4 chunk = LOAD_DSUM_CHUNK(dsum, left);
    first += chunk_vector(chunk, 0u);
    if (NORM_FOURS == 2u) second += chunk_vector(chunk, 1u);
  }
  STORE_DX_CHUNK(first, second, dx, left);
  if (NORM_HAS(NORM_GRAD_RESIDUAL)) STORE_DRESIDUAL_CHUNK(first, second, dresidual, left);
  if (NORM_HAS(NORM_KEEP_GRADIENT)) {
    STORE_SCRATCH(first, floats);
    if (NORM_FOURS == 2u) STORE_SCRATCH(second, floats + 4u);
  }
}

// Of four elements.
FUNCTION void norm_store(NORM_PARAMETERS FLOAT4 value, INDEX dsum, INDEX dx, INDEX dresidual,
                         INDEX floats, u32 left) {
  if (NORM_HAS(NORM_SUM)) value += LOAD_DSUM(dsum, left);
  STORE_DX(value, dx, left);
  if (NORM_HAS(NORM_GRAD_RESIDUAL)) STORE_DRESIDUAL(value, dresidual, left);
  if (NORM_HAS(NORM_KEEP_GRADIENT)) STORE_SCRATCH(value, floats);
}

#endif  // TESSERA_OPERATIONS_NORMS_BACKWARD_STORE_H
