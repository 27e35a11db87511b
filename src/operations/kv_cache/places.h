// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/tables/places.cl and kv_cache/tables/places.comp. Text for OpenCL C and
// GLSL. SLOT(i), TABLE(sequence, page), LENGTH(sequence) and COUNT are what the operands hold,
// START(sequence) the offsets of scratch, which do not decrease, PLACE(n) is where the place of
// token n goes, RAISE(kind, index) raises an error.

const u32 n = GLOBAL_ID;
const i32 tokens = TO_INT(ARGS(tokens)), pages = TO_INT(ARGS(pages));
const i32 page_size = TO_INT(ARGS(page_size));
i32 place = CACHE_NOWHERE;
if (ARGS(mapped) != 0u) {
  if (n < ARGS(tokens)) {
    const i32 slot = SLOT(n);
    if (slot >= 0 && slot < pages * page_size) {
      place = slot;
    } else if (slot != CACHE_NOWHERE) {
      RAISE(CACHE_BAD_SLOT, n);
    }
  }
} else {
  const i32 most = TO_INT(ARGS(sequences));
  i32 count = most;
  if (ARGS(counted) != 0u) {
    count = clamp(COUNT, 0, most);
    if (n == 0u && count != COUNT) RAISE(CACHE_BAD_COUNT, 0u);
  }
  const i32 self = TO_INT(n);
  const i32 room = TO_INT(ARGS(pages_per_sequence)) * page_size;
  if (self < count) {
    const i32 length = LENGTH(self);
    if (length < START(self + 1) - START(self) || length > room) RAISE(CACHE_BAD_LENGTH, n);
  }
  if (self < tokens) {
    // Token n belongs to the sequence in front of the first offset beyond it.
    i32 next = 0, behind = count + 1;
    if (self < count)  // there, where each sequence has one token
      if (START(self) <= self && START(self + 1) > self) next = behind = self + 1;
    while (next < behind) {
      const i32 middle = (next + behind) / 2;
      const bool is_beyond = START(middle) > self;
      behind = is_beyond ? middle : behind;
      next = is_beyond ? next : middle + 1;
    }
    if (next > 0 && next <= count) {
      const i32 sequence = next - 1;
      const i32 position = clamp(LENGTH(sequence), 0, room) - START(next) + self;
      if (position >= 0) {
        const i32 entry = position / page_size;
        const i32 page = TABLE(sequence, entry);
        if (page >= 0 && page < pages) {
          place = page * page_size + position % page_size;
        } else {
          RAISE(CACHE_BAD_PAGE, TO_U32(sequence) * ARGS(pages_per_sequence) + TO_U32(entry));
        }
      }
    }
  }
}
if (n < ARGS(list)) PLACE(n) = place;
