// SPDX-License-Identifier: Apache-2.0
// What     output = input weight^T, weights in 8 or 4 bits with a scale for each group of terms.
// Who      A work-group is one item and owns ROWS rows by COLUMNS columns of output, LINES of them at a time.
// Memory   Weights once, in their order; QUANT_TERMS terms of the rows as floats in private memory, in the order in which
//          the weights of a chunk lie.
// Numerics Float: code minus zero is exact; sums of the lanes of a vector, a group's times its scale.
// Assumes  Operands below 2^31 elements.
#include "lib/bytes.clh"
#include "lib/cpu/typed.clh"
#include "operations/quantised_core/args.h"
#include "operations/quantised_core/scale.h"

#define QUANT_TERMS (16384 / ROWS)
#define QUANT_AHEAD 2048  // bytes
// Rows of weights that share what is loaded of the input; four rows of it come from the second cache.
#define LINES (VECTOR_WIDTH == 4 ? 1 : ROWS > 1 ? 2 : VECTOR_WIDTH / 4)
// Sums of a line and row, which do not wait for one another, where lines and rows alone are too few for that.
#define SUMS (LINES * ROWS < 4 ? 2 : 1)
#define NIBBLES (FORMAT % 2)
#define BLOCKS (FORMAT / 2)
#define CHUNK_BYTES (NIBBLES ? 16 : 32)
#define STEP_BYTES (CHUNK_BYTES + (BLOCKS ? 2 : 0))  // from chunk to chunk
typedef JOIN(uchar, VECTOR_WIDTH) ucharv;
// PoCL converts the elements one by one, and its vload makes loads of two bytes where bytes lie behind a half.
#ifdef __clang__
#define floats_of(x) __builtin_convertvector(x, floatv)
typedef ucharv bytes_anywhere __attribute__((aligned(1)));
#define LOAD_BYTES(space, p) (*(space bytes_anywhere*)(p))
#else
#define floats_of(x) JOIN(convert_float, VECTOR_WIDTH)(x)
#define LOAD_BYTES(space, p) vloadv(0, p)
#endif

// Half bytes are not converted: among the lower bits of a float that is a power of two one makes that larger by its own
// value, if the lowest bit that it takes counts as one there. What is subtracted has that power, too.
#define POWER(place) ((127u + 23u - (place)) << 23)
#if NIBBLES
INLINE floatv placed(uintv words, uint place, uchar flip, floatv zero) {
  const uintv bits = (words & (uintv)(15u << place)) ^ (uintv)(POWER(place) | (uint)(flip & 15) << place);
  return as_floatv(bits) - zero;
}
#endif
#define LOW_POWER 8388608.0f
#define HIGH_POWER 524288.0f

// Where vectors have sixteen floats, the lower halves come from a table, by the low four bits of each word: adders and
// shuffles are busy alike then.
#define BY_TABLE 0
#if defined(__AVX512F__) && VECTOR_WIDTH == 16
#undef BY_TABLE
#define BY_TABLE NIBBLES
INLINE floatv from_table(floatv table, uintv at) {
  floatv x;
  __asm__("vpermps %2, %1, %0" : "=v"(x) : "v"(at), "v"(table));
  return x;
}
#endif

// name(part, p, x, zero, flip): part[r] and, of two sums, part[ROWS + r] += the 32 weights from p times the rows' terms
// from x. Codes that are numbers as they are have no zero.
#if BY_TABLE
#define DECODE(bytes)                                                                                                  \
  const uintv words = JOIN(convert_uint, VECTOR_WIDTH)(bytes);                                                         \
  const floatv low = from_table(zero.low, words), high = placed(words, 4, flip, zero.high);
#elif NIBBLES
#define DECODE(bytes)                                                                                                  \
  const uintv words = JOIN(convert_uint, VECTOR_WIDTH)(bytes);                                                         \
  const floatv low = placed(words, 0, flip, zero.low), high = placed(words, 4, flip, zero.high);
#elif CENTRED
#define DECODE(bytes) const floatv low = floats_of(JOIN(as_char, VECTOR_WIDTH)(bytes)), high = low;
#else
#define DECODE(bytes) const floatv low = floats_of((bytes) ^ (ucharv)(flip)) - zero.low, high = low;
#endif
// A zero point as low and high halves of bytes need it; codes of a byte have the low one.
struct Zero {
  floatv low, high;
};
INLINE struct Zero zero_of(float number, uchar flip) {
  struct Zero zero;
#if BY_TABLE
  // What half bytes stand for, two's complement as numbers from 0 on.
  zero.low = JOIN(convert_float, VECTOR_WIDTH)(as_uintv(LANE_INDEX) ^ (uintv)(flip & 15u)) - (floatv)(number);
#else
  zero.low = (floatv)(number + (NIBBLES ? LOW_POWER : 0.0f));
#endif
  zero.high = (floatv)(number + HIGH_POWER);
  return zero;
}
#define ADD_CHUNK(name, space)                                                                                         \
  INLINE void name(floatv* part, space uchar* p, const float* x, struct Zero zero, uchar flip) {                       \
    UNROLL for (int i = 0; i < CHUNK_BYTES; i += VECTOR_WIDTH) {                                                       \
      const int second = NIBBLES ? 0 : i / VECTOR_WIDTH % SUMS * ROWS;                                                 \
      DECODE(LOAD_BYTES(space, p + i))                                                                                 \
      UNROLL for (int r = 0; r < ROWS; ++r)                                                                            \
        part[second + r] = fma(low, vloadv(0, x + r * QUANT_TERMS + i), part[second + r]);                             \
      if (NIBBLES)                                                                                                     \
        UNROLL for (int r = 0; r < ROWS; ++r)                                                                          \
          part[(SUMS - 1) * ROWS + r] =                                                                                \
              fma(high, vloadv(0, x + r * QUANT_TERMS + 16 + i), part[(SUMS - 1) * ROWS + r]);                         \
    }                                                                                                                  \
  }
ADD_CHUNK(add_chunk, const global)
#if !BLOCKS
ADD_CHUNK(add_held_chunk, const)
#endif

INLINE floatv sum_of_parts(const floatv* part) { return SUMS > 1 ? part[0] + part[(SUMS - 1) * ROWS] : part[0]; }

// The even terms of a chunk before the odd ones, as low and high halves of bytes have them.
INLINE void place_terms(float* x) {
  floatv even[16 / VECTOR_WIDTH], odd[16 / VECTOR_WIDTH];
  UNROLL for (int i = 0; i < 16 / VECTOR_WIDTH; ++i) {
    const floatv low = vloadv(2 * i, x), high = vloadv(2 * i + 1, x);
    even[i] = (floatv)(low.even, high.even);
    odd[i] = (floatv)(low.odd, high.odd);
  }
  UNROLL for (int i = 0; i < 16 / VECTOR_WIDTH; ++i) {
    vstorev(even[i], i, x);
    vstorev(odd[i], 16 / VECTOR_WIDTH + i, x);
  }
}

// What is read next: behind the end of what is read of a row of weights comes what is read of the one LINES further.
INLINE void fetch_ahead(const global uchar* from, uint chunk, uint chunks, size_t row) {
  const uint at = chunk * STEP_BYTES + QUANT_AHEAD;
  from += at + (at < chunks * STEP_BYTES ? 0 : LINES * row - chunks * STEP_BYTES);
  UNROLL for (int l = 0; l < LINES; ++l) PREFETCH(from + l * row);
}

// As quant_scale().
INLINE floatv finite_scales(floatv x) {
  const uintv exponents = as_uintv(x) & (uintv)(0x7f800000u);
  return exponents == (uintv)(0x7f800000u) ? as_floatv((uintv)(0x7fc00000u)) : x;
}

// Up to VECTOR_WIDTH terms of a row, 0 behind `count`.
INLINE floatv input_part(const global void* input, size_t at, int count) {
  if (INPUT_TYPE != DTYPE_I8) return load_typed_part(input, at, 1, count, INPUT_TYPE);
  const global char* bytes = (const global char*)input + at;
  if (count >= VECTOR_WIDTH) return floats_of(vloadv(0, bytes));
  float part[VECTOR_WIDTH];
  ROLLED for (int i = 0; i < VECTOR_WIDTH; ++i) part[i] = i < count ? (float)bytes[i] : 0.0f;
  return vloadv(0, part);
}

// The halves that sixteen blocks begin with, as floats: of 128 bytes a shuffle takes those of eight blocks of half bytes, or
// of four. One by one they are a third of such a product's time.
#define BY_SHUFFLES 0
#if BLOCKS && defined(__clang__) && defined(__AVX512BW__) && VECTOR_WIDTH == 16
#undef BY_SHUFFLES
#define BY_SHUFFLES 1
#define SHUFFLED (NIBBLES ? 8 : 4)
typedef uintv words_anywhere __attribute__((aligned(2)));
INLINE uintv shuffled_words(const global uchar* p) {
  const uintv even = as_uintv(LANE_INDEX) * STEP_BYTES, at = even | (even + STEP_BYTES / 2) << 16;
  uintv words = *(const global words_anywhere*)p;
  __asm__("vpermt2w %2, %1, %0" : "+v"(words) : "v"(at), "v"(*(const global words_anywhere*)(p + 64)));
  return words;
}
INLINE floatv halves_of_blocks(const global uchar* p) {
  uintv part[16 / SHUFFLED];
  UNROLL for (int i = 0; i < 16 / SHUFFLED; ++i) part[i] = shuffled_words(p + i * SHUFFLED * STEP_BYTES);
#if NIBBLES
  const uint8 halves = (uint8)(part[0].s0123, part[1].s0123);
#else
  const uint8 halves = (uint8)(part[0].s01, part[1].s01, part[2].s01, part[3].s01);
#endif
  floatv x;
  __asm__("vcvtph2ps %1, %0" : "=v"(x) : "v"(halves));
  return x;
}
#endif

// The scales of up to VECTOR_WIDTH groups of a row of weights from `group` on, whose first chunk lies at `line`.
INLINE floatv scales_of(const global uchar* line, const global void* scale, const struct QuantArgs args, uint column,
                        uint group, int count) {
#if BY_SHUFFLES
  if (count == VECTOR_WIDTH) return finite_scales(halves_of_blocks(line));
#endif
#if BLOCKS
  // Halves are converted by vectors.
  ushort halves[VECTOR_WIDTH];
  UNROLL for (int i = 0; i < VECTOR_WIDTH; ++i)
    halves[i] = as_ushort(vload2(0, line + min(i, count - 1) * STEP_BYTES));
  return finite_scales(JOIN(vload_half, VECTOR_WIDTH)(0, (const half*)halves));
#else
  return finite_scales(
      load_typed_part(scale, args.scale_offset + column * args.scale_row + group, 1, count, args.scale_type));
#endif
}

// What is subtracted from their codes.
INLINE floatv zeros_of(const global uchar* zero, const struct QuantArgs args, uint column, uint group, int count,
                       uint middle) {
  float numbers[VECTOR_WIDTH];
  const size_t first = args.zero_offset + (size_t)column * args.zero_row + group;
  ROLLED for (int i = 0; i < VECTOR_WIDTH; ++i) {
    const size_t at = first + min(i, count - 1);
    numbers[i] = (float)((NIBBLES ? load_half_byte(zero, at) : load_byte(zero, at)) ^ middle);
  }
  return vloadv(0, numbers);
}

KERNEL void quantised_product_cpu(const global void* restrict input, const global uchar* restrict weight,
                                  const global void* restrict scale, const global uchar* restrict zero,
                                  const global float* restrict input_scale,
                                  global void* restrict output, const struct QuantArgs args) {
  const uint blocks_m = (args.m + ROWS - 1) / ROWS, unit = get_group_id(0);
  const uint row0 = unit % blocks_m * ROWS, column0 = unit / blocks_m * COLUMNS;
  const int columns = (int)min(args.n - column0, (uint)COLUMNS);
  const bool is_signed = (args.features & QUANT_SIGNED) != 0u;
  const uchar flip = is_signed && !BLOCKS ? (NIBBLES ? 0x88 : 0x80) : 0;
  const uint middle = is_signed || FORMAT == QUANT_Q4_0 ? (NIBBLES ? 8 : 128) : 0;
  const uint group = BLOCKS ? 1u : args.group;
  float x[ROWS * QUANT_TERMS] __attribute__((aligned(64)));
  // Of the lines, for as many groups as a vector has lanes.
  float factors[LINES * VECTOR_WIDTH], zeros[LINES * VECTOR_WIDTH];
  for (int l = 0; l < LINES; ++l) vstorev((floatv)((float)middle), l, zeros);
  const bool has_zeros = !BLOCKS && (args.features & QUANT_ZEROS) != 0u;
  const struct Zero same = zero_of((float)middle, flip);
  floatv sum[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; ++i) sum[i] = (floatv)(0.0f);
  for (uint term0 = 0; term0 < args.k; term0 += QUANT_TERMS) {
    const uint terms = min(args.k - term0, (uint)QUANT_TERMS), chunks = (terms + QUANT_CHUNK - 1) / QUANT_CHUNK;
    for (int r = 0; r < ROWS; ++r) {
      const size_t at = args.input_offset + (size_t)min(row0 + r, args.m - 1) * args.input_row + term0;
      float* to = x + r * QUANT_TERMS;
      for (uint i = 0; i < chunks * QUANT_CHUNK; i += VECTOR_WIDTH)
        vstorev(i < terms ? input_part(input, at + i, (int)(terms - i)) : (floatv)(0.0f), 0, to + i);
      if (FORMAT == QUANT_NIBBLES)
        for (uint chunk = 0; chunk < chunks; ++chunk) place_terms(to + chunk * QUANT_CHUNK);
    }
    const uint first_chunk = term0 / QUANT_CHUNK, first_group = first_chunk / group;
    const uint end_group = (first_chunk + chunks - 1) / group + 1;
    const uint whole = BLOCKS ? chunks : terms / QUANT_CHUNK;
    // What is left of columns goes one by one: all lines are the same one then.
    for (int c = 0, lines; c < columns; c += lines) {
      lines = columns - c >= LINES ? LINES : 1;
      const uint step = lines == LINES ? 1u : 0u, column = column0 + c;
      const size_t row = step * (size_t)args.weight_row;
      const global uchar* const from =
          weight + args.weight_offset + (size_t)column * args.weight_row + (size_t)first_chunk * STEP_BYTES;
      floatv total[LINES * ROWS];
      UNROLL for (int l = 0; l < LINES; ++l)
        UNROLL for (int r = 0; r < ROWS; ++r) total[l * ROWS + r] = sum[(c + (int)step * l) * ROWS + r];
      uint chunk = 0, last = min((first_group + 1) * group - first_chunk, whole);
      for (uint group0 = first_group; group0 < end_group; group0 += VECTOR_WIDTH) {
        const int count = (int)min(end_group - group0, (uint)VECTOR_WIDTH);
        UNROLL for (int l = 0; l < LINES; ++l) {
          const global uchar* head = from + l * row + chunk * STEP_BYTES;
          vstorev(scales_of(head, scale, args, column + l * step, group0, count), l, factors);
          if (has_zeros) vstorev(zeros_of(zero, args, column + l * step, group0, count, middle), l, zeros);
        }
        for (int g = 0; g < count; ++g, last = min(last + group, whole)) {
          floatv part[SUMS * LINES * ROWS];
          struct Zero number[LINES];
          UNROLL for (int i = 0; i < SUMS * LINES * ROWS; ++i) part[i] = (floatv)(0.0f);
          UNROLL for (int l = 0; l < LINES; ++l)
            number[l] = has_zeros ? zero_of(zeros[l * VECTOR_WIDTH + g], flip) : same;
          // The whole chunks of a group that are in this block of terms.
          for (const uint stop = BLOCKS ? chunk + 1 : last; chunk < stop; ++chunk) {
            fetch_ahead(from, chunk, chunks, row);
            UNROLL for (int l = 0; l < LINES; ++l)
              add_chunk(part + SUMS * l * ROWS, from + l * row + (size_t)chunk * STEP_BYTES + STEP_BYTES - CHUNK_BYTES,
                        x + (size_t)chunk * QUANT_CHUNK, number[l], flip);
          }
          UNROLL for (int l = 0; l < LINES; ++l)
            UNROLL for (int r = 0; r < ROWS; ++r)
              total[l * ROWS + r] = fma((floatv)(factors[l * VECTOR_WIDTH + g]),
                                        sum_of_parts(part + SUMS * l * ROWS + r), total[l * ROWS + r]);
        }
      }
      // A row that is the same as the first one has its sum.
      UNROLL for (int l = 0; l < LINES; ++l)
        UNROLL for (int r = 0; r < ROWS; ++r) sum[(c + (int)step * l) * ROWS + r] = total[l * ROWS + r];
#if !BLOCKS
      if (whole < chunks) {
        // The last chunk of a row, of which a part is there.
        const int left = (int)(terms - whole * QUANT_CHUNK), bytes = NIBBLES ? (left + 1) / 2 : left;
        for (int l = 0; l < lines; ++l) {
          const int at = l * VECTOR_WIDTH + (int)((end_group - 1 - first_group) % VECTOR_WIDTH);
          const global uchar* p = from + l * row + (size_t)whole * STEP_BYTES;
          uchar held[32] __attribute__((aligned(32)));
          for (int i = 0; i < CHUNK_BYTES; ++i) held[i] = i < bytes ? p[i] : 0;
          floatv part[SUMS * ROWS];
          UNROLL for (int i = 0; i < SUMS * ROWS; ++i) part[i] = (floatv)(0.0f);
          add_held_chunk(part, held, x + whole * QUANT_CHUNK, zero_of(zeros[at], flip), flip);
          UNROLL for (int r = 0; r < ROWS; ++r)
            sum[(c + l) * ROWS + r] = fma((floatv)(factors[at]), sum_of_parts(part + r), sum[(c + l) * ROWS + r]);
        }
      }
#endif
    }
  }
  for (int r = 0; r < ROWS && row0 + r < args.m; ++r) {
    float factor = 1.0f;
    if ((args.features & QUANT_INPUT_SCALE) != 0u)
      factor = quant_scale(input_scale[args.input_scale_offset + (row0 + r) * args.input_scale_row]);
    for (int c = 0; c < columns; ++c)
      store_typed_steps((float4)(factor * sum_of_lanes(sum[c * ROWS + r])), output,
                        args.output_offset + (row0 + r) * args.output_row + column0 + c, 1, 1, args.output_type);
  }
}
