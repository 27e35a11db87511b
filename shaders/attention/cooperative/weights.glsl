// SPDX-License-Identifier: Apache-2.0
// Two weights as elements of matrices, in a word.
#ifndef TESSERA_ATTENTION_COOPERATIVE_WEIGHTS_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_WEIGHTS_GLSL
#include "lib/prelude.glsl"

#if DTYPE == DTYPE_F16
uint narrow_weights(vec2 x) { return packFloat2x16(f16vec2(x)); }
#else
uint narrow_weights(vec2 x) { return narrow(x.x) | narrow(x.y) << 16; }
#endif

#endif  // TESSERA_ATTENTION_COOPERATIVE_WEIGHTS_GLSL
