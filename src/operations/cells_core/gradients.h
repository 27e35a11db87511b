// SPDX-License-Identifier: Apache-2.0
// What a step gives back, text of every way's kernels: `gradients` of the sums of each gate,
// `carry`, what h before gets past the product, and dc before, of dh and dc behind the step.
// `turned` is the gradient of the third gate's weight_hh h + bias_hh. VALUES is a float or a vector
// of them; CELL_KEPT_VALUE(block) is what the step kept, the h that entered it behind the rest.

carry = CELL_ZERO;
if (CELL == CELL_LSTM) {
  const VALUES i = CELL_KEPT_VALUE(0u), f = CELL_KEPT_VALUE(1u);
  const VALUES g = CELL_KEPT_VALUE(2u), o = CELL_KEPT_VALUE(3u);
  const VALUES before = CELL_KEPT_VALUE(4u), t = CELL_TANH(f * before + i * g);
  dc += dh * o * (1.0f - t * t);
  gradients[0] = dc * g * i * (1.0f - i);
  gradients[1u % CELL_GATES] = dc * before * f * (1.0f - f);
  gradients[2u % CELL_GATES] = dc * i * (1.0f - g * g);
  gradients[3u % CELL_GATES] = dh * t * o * (1.0f - o);
  dc *= f;
} else if (CELL == CELL_GRU) {
  const VALUES r = CELL_KEPT_VALUE(0u), z = CELL_KEPT_VALUE(1u);
  const VALUES n = CELL_KEPT_VALUE(2u), recurrent = CELL_KEPT_VALUE(3u);
  const VALUES dn = dh * (1.0f - z) * (1.0f - n * n);
  gradients[0] = dn * recurrent * r * (1.0f - r);
  gradients[1u % CELL_GATES] = dh * (CELL_KEPT_VALUE(CELL_KEPT) - n) * z * (1.0f - z);
  gradients[2u % CELL_GATES] = dn;
  turned = dn * r;
  carry = dh * z;
} else {
  const VALUES h = CELL_KEPT_VALUE(0u);
  if (CELL_HAS(CELL_RELU)) {
    gradients[0] = CELL_WHERE_ABOVE(h, dh, CELL_ZERO);
  } else {
    gradients[0] = dh * (1.0f - h * h);
  }
}
