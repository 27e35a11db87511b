// SPDX-License-Identifier: Apache-2.0
// Behind sequence.h: what of the sequence a work-group takes. Text for OpenCL C and GLSL.
// LOAD_MARK(i): of kernels that ways of matrix units call for sequences that they leave.

#ifdef LOAD_MARK
if (MARKED != 0u && (sequence >= sequences || LOAD_MARK(sequence * heads + head) == 0)) return;
#endif
// The steps [first, first + count) of the sequence: those of the launch, or a span of them.
const u32 spans = ARGS(spans);
u32 first = ARGS(first), most = ARGS(most);
if (spans > 1u) {
  most = ((length + spans - 1u) / spans + ARGS(segment) - 1u) / ARGS(segment) * ARGS(segment);
  first = span * most;
}
u32 count = first < length ? min(most, length - first) : 0u;
