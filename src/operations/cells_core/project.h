// SPDX-License-Identifier: Apache-2.0
// What a projection makes of the product `h`, text of every way's kernels: h of a step, or its
// gradient before the step that the cells take. `before` lies at `carry`, output or its gradient at
// `out_at`; CELL_KEEP(x) keeps h before, or the gradient of h.

if (CELL_HAS(CELL_BACKWARD)) {
  h += before;
  if (!CELL_HAS(CELL_LAST)) {
    if (is_token) h += CELL_GRADIENT;
    CELL_STORE(is_token ? CELL_ZERO : h, carry);
    if (!is_token) h = CELL_ZERO;
    CELL_KEEP(h);
  }
} else {
  if (!is_token) h = before;
  if (step < tokens) {
    if (CELL_HAS(CELL_KEEPS)) CELL_KEEP(is_token ? before : CELL_ZERO);
    if (CELL_HAS(CELL_HAS_OUTPUT)) CELL_STORE_OUTPUT(is_token ? h : CELL_ZERO);
  }
}
CELL_STORE(h, ARGS(to_state) + entry * ARGS(to_terms) + unit);
if (CELL_HAS(CELL_LAST) && CELL_HAS(CELL_HAS_H)) CELL_STORE_H(h);
