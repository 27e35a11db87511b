// SPDX-License-Identifier: Apache-2.0
// What a step makes of sums, text of every way's kernels: h and c, of of_input and of_hidden (the
// sums of each gate), h `before` and c. VALUES is a float or a vector of them;
// CELL_KEEP_VALUE(block, x) keeps what the way back needs.

if (CELL == CELL_LSTM) {
  const VALUES i = CELL_SIGMOID(of_input[0] + of_hidden[0]);
  const VALUES f = CELL_SIGMOID(of_input[1u % CELL_GATES] + of_hidden[1u % CELL_GATES]);
  const VALUES g = CELL_TANH(of_input[2u % CELL_GATES] + of_hidden[2u % CELL_GATES]);
  const VALUES o = CELL_SIGMOID(of_input[3u % CELL_GATES] + of_hidden[3u % CELL_GATES]);
  CELL_KEEP_VALUE(0u, i);
  CELL_KEEP_VALUE(1u, f);
  CELL_KEEP_VALUE(2u, g);
  CELL_KEEP_VALUE(3u, o);
  CELL_KEEP_VALUE(4u, c);
  c = f * c + i * g;
  h = o * CELL_TANH(c);
} else if (CELL == CELL_GRU) {
  const VALUES r = CELL_SIGMOID(of_input[0] + of_hidden[0]);
  const VALUES z = CELL_SIGMOID(of_input[1u % CELL_GATES] + of_hidden[1u % CELL_GATES]);
  const VALUES recurrent = of_hidden[2u % CELL_GATES];
  const VALUES n = CELL_TANH(of_input[2u % CELL_GATES] + r * recurrent);
  CELL_KEEP_VALUE(0u, r);
  CELL_KEEP_VALUE(1u, z);
  CELL_KEEP_VALUE(2u, n);
  CELL_KEEP_VALUE(3u, recurrent);
  h = (1.0f - z) * n + z * before;
} else {
  h = of_input[0] + of_hidden[0];
  if (CELL_HAS(CELL_RELU)) {
    h = CELL_WHERE_ABOVE(-h, 0.0f, h);
  } else {
    h = CELL_TANH(h);
  }
  CELL_KEEP_VALUE(0u, h);
}
