// SPDX-License-Identifier: Apache-2.0
// What attention/core/pages checks of the ends of sequences that decode, are prefilled, and do
// either. Text for OpenCL C and GLSL: the work-group's `sequence` has the rows [begin, end), `item`
// is its item, END(n) what the operand holds, RAISE(kind, index) raises an error.

const i32 most = TO_INT(ARGS(sequences));
if (sequence == 0 && item < TO_INT(ARGS(ends))) {
  const i32 before = item > 0 ? END(item - 1) : 0;
  if (END(item) < before || END(item) > most) RAISE(PAGES_BAD_END, item);
}
if (item == 0 && sequence < min(END(0), most) && end - begin != 1)
  RAISE(PAGES_NOT_ONE_ROW, sequence);
