// SPDX-License-Identifier: Apache-2.0
// Activations and their slopes, on vectors of floats: read by OpenCL C and GLSL. Before it is
// included: ACT_VALUES, the type; ACT_SPLAT(x), a float in every lane; ACT_EXP(x); ACT_ABS(x);
// ACT_BELOW(x, a, b), a in the lanes where x is below 0; ACT_CLAMP(x, limit), to +-limit.
// ACT_INVERSE(x) may be, 1 / x, and ACT_BELL(x), exp(-x^2 / 2); ACT_16_BITS says that results are
// rounded to 16 bits.
#ifndef TESSERA_OPERATIONS_MATMUL_CORE_ACTIVATION_H
#define TESSERA_OPERATIONS_MATMUL_CORE_ACTIVATION_H

#ifndef ACT_INVERSE
#define ACT_INVERSE(x) (ACT_SPLAT(1.0f) / (x))
#endif
#ifndef ACT_BELL
#define ACT_BELL(x) ACT_EXP((x) * (x)*ACT_SPLAT(-0.5f))
#endif

FUNCTION ACT_VALUES matmul_sigmoid(ACT_VALUES x) {
  return ACT_INVERSE(ACT_SPLAT(1.0f) + ACT_EXP(-x));
}

// The normal distribution's density times sqrt(2 pi).
FUNCTION ACT_VALUES matmul_bell(ACT_VALUES x) { return ACT_BELL(x); }

// The normal distribution below x, of x and its bell. What is beyond |x| is bell t p(t), t = 1 / (1
// + 0.26 |x|), with p of degree 8 through the Chebyshev nodes: relative error 6.4e-8 up to 14,
// behind which float has nothing left. For results of 16 bits p has degree 5, with 0.3: at most
// 8 units of float relative and 2 absolute, half of what matmul_core/activation.cpp allows, and
// 3e-5.
FUNCTION ACT_VALUES matmul_below(ACT_VALUES x, ACT_VALUES bell) {
#ifdef ACT_16_BITS
  const ACT_VALUES t = ACT_INVERSE(ACT_SPLAT(1.0f) + ACT_SPLAT(0.3f) * ACT_ABS(x));
  ACT_VALUES p = ACT_SPLAT(-0.0793903992f) * t + ACT_SPLAT(0.222047344f);
  p = p * t + ACT_SPLAT(-0.0225884337f);
  p = p * t + ACT_SPLAT(0.146441847f);
  p = p * t + ACT_SPLAT(0.113405369f);
  p = p * t + ACT_SPLAT(0.120083958f);
#else
  const ACT_VALUES t = ACT_INVERSE(ACT_SPLAT(1.0f) + ACT_SPLAT(0.26f) * ACT_ABS(x));
  ACT_VALUES p = ACT_SPLAT(0.0321890600f) * t + ACT_SPLAT(-0.160858154f);
  p = p * t + ACT_SPLAT(0.267731220f);
  p = p * t + ACT_SPLAT(-0.169100448f);
  p = p * t + ACT_SPLAT(0.173176691f);
  p = p * t + ACT_SPLAT(0.0459560007f);
  p = p * t + ACT_SPLAT(0.104291782f);
  p = p * t + ACT_SPLAT(0.102844976f);
  p = p * t + ACT_SPLAT(0.103768855f);
#endif
  const ACT_VALUES beyond = bell * t * p;
  return ACT_BELOW(x, beyond, ACT_SPLAT(1.0f) - beyond);
}

// 2 sqrt(2 / pi) (x + 0.044715 x^3): gelu_tanh(x) is x sigmoid() of it.
FUNCTION ACT_VALUES matmul_gelu_inner(ACT_VALUES x) {
  return ACT_SPLAT(1.59576912f) * x * (ACT_SPLAT(1.0f) + ACT_SPLAT(0.044715f) * x * x);
}

FUNCTION ACT_VALUES matmul_activation(u32 kind, ACT_VALUES x) {
  if (kind == MATMUL_RELU) return ACT_BELOW(x, ACT_SPLAT(0.0f), x);
  if (kind == MATMUL_GELU) return x * matmul_below(x, matmul_bell(x));
  if (kind == MATMUL_GELU_TANH) return x * matmul_sigmoid(matmul_gelu_inner(x));
  if (kind == MATMUL_SILU) return x * matmul_sigmoid(x);
  return x;
}

// Beyond +-32 the slopes are 0 and 1 to all digits; there x stays in its limits, so that no product
// is 0 times infinity. NaN is kept by the sigmoid or the distribution.
FUNCTION ACT_VALUES matmul_slope(u32 kind, ACT_VALUES x) {
  if (kind == MATMUL_RELU) return ACT_BELOW(-x, ACT_SPLAT(1.0f), ACT_BELOW(x, ACT_SPLAT(0.0f), x));
  const ACT_VALUES near = ACT_CLAMP(x, 32.0f);
  if (kind == MATMUL_GELU) {
    const ACT_VALUES bell = matmul_bell(x);
    return matmul_below(x, bell) + ACT_SPLAT(0.398942280f) * near * bell;
  }
  if (kind == MATMUL_GELU_TANH) {
    const ACT_VALUES s = matmul_sigmoid(matmul_gelu_inner(x));
    return s + near * s * (ACT_SPLAT(1.0f) - s) *
                   (ACT_SPLAT(1.59576912f) + ACT_SPLAT(0.214064449f) * near * near);
  }
  if (kind == MATMUL_SILU) {
    const ACT_VALUES s = matmul_sigmoid(x);
    return s + near * s * (ACT_SPLAT(1.0f) - s);
  }
  return ACT_SPLAT(1.0f);
}

#endif  // TESSERA_OPERATIONS_MATMUL_CORE_ACTIVATION_H
