// SPDX-License-Identifier: Apache-2.0
// What     output = input weight^T, weights in 8 or 4 bits with a scale for each group of terms.
// Who      A work-group is one item and owns ROWS rows by COLUMNS columns of output.
// Memory   Weights once, in their order; QUANT_TERMS terms of the rows as floats in private memory, in the order in which
//          the weights of a chunk lie.
// Numerics Float: code minus zero is exact; sums of the lanes of a vector, a group's times its scale.
// Assumes  Operands below 2^31 elements.
#include "lib/bytes.clh"
#include "lib/cpu/typed.clh"
#include "operations/quantised_core/args.h"
#include "operations/quantised_core/scale.h"

#define QUANT_TERMS 4096
#define QUANT_AHEAD 2048  // bytes
#define NIBBLES (FORMAT % 2)
#define BLOCKS (FORMAT / 2)
#define CHUNK_BYTES (NIBBLES ? 16 : 32)
#define STEP_BYTES (CHUNK_BYTES + (BLOCKS ? 2 : 0))  // from chunk to chunk
typedef JOIN(uchar, VECTOR_WIDTH) ucharv;
// PoCL converts the elements one by one.
#ifdef __clang__
#define floats_of(x) __builtin_convertvector(x, floatv)
#else
#define floats_of(x) JOIN(convert_float, VECTOR_WIDTH)(x)
#endif

// Numbers of half bytes from a table of sixteen, by the low four bits of each word.
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

// With eight floats a half byte is not converted: among the lower bits of a float that is a power of two it makes that larger by
// its own value. The first four lanes have the lower halves of words, the others the upper ones.
#define BY_PLACE (NIBBLES && VECTOR_WIDTH == 8)

// name(part, p, x, zero, flip): part[r] and part[ROWS + r] += the 32 weights from p times the rows' terms from x, for two
// sums that do not wait for one another. `zero` is the table where there is one; codes that are numbers as they are
// have none.
#if BY_TABLE
#define DECODE(bytes)                                             \
  const uintv words = JOIN(convert_uint, VECTOR_WIDTH)(bytes);    \
  const floatv low = from_table(zero, words), high = from_table(zero, words >> (uintv)(4));
#elif CENTRED
#define DECODE(bytes) \
  const floatv low = floats_of(JOIN(as_char, VECTOR_WIDTH)(bytes)), high = low;
#else
#define DECODE(bytes)                                                                          \
  const ucharv codes = (bytes) ^ (ucharv)(flip);                                               \
  const floatv low = floats_of(NIBBLES ? codes & (ucharv)(15) : codes) - zero;                 \
  const floatv high = NIBBLES ? floats_of(codes >> (ucharv)(4)) - zero : low;
#endif
#if BY_PLACE
#define ADD_CHUNK(name, BYTES)                                                                                      \
  INLINE void name(floatv* part, BYTES p, const float* x, floatv zero, uchar flip) {                                \
    const uint4 held = as_uint4(vload16(0, p));                                                                     \
    uintv words = (uintv)(held, held) >> (uintv)(0, 0, 0, 0, 16, 16, 16, 16);                                       \
    UNROLL for (int j = 0; j < 4; ++j) {                                                                            \
      const uint place = j % 2 * 4, power = (127u + 23u - place) << 23; /* the bit at `place` counts as one */      \
      const uintv bits = (words & (uintv)(15u << place)) ^ (uintv)(power | (uint)(flip & 15) << place);             \
      const floatv low = as_floatv(bits) - (zero + as_floatv((uintv)(power)));                                      \
      UNROLL for (int r = 0; r < ROWS; ++r)                                                                         \
        part[j % 2 * ROWS + r] = fma(low, vloadv(0, x + r * QUANT_TERMS + 8 * j), part[j % 2 * ROWS + r]);          \
      if (j == 1) words >>= (uintv)(8);                                                                             \
    }                                                                                                               \
  }
#else
#define ADD_CHUNK(name, BYTES)                                                                                  \
  INLINE void name(floatv* part, BYTES p, const float* x, floatv zero, uchar flip) {                            \
    UNROLL for (int i = 0; i < CHUNK_BYTES; i += VECTOR_WIDTH) {                                                \
      const int second = NIBBLES ? 0 : i / VECTOR_WIDTH % 2 * ROWS;                                             \
      DECODE(vloadv(0, p + i))                                                                                  \
      UNROLL for (int r = 0; r < ROWS; ++r)                                                                     \
        part[second + r] = fma(low, vloadv(0, x + r * QUANT_TERMS + i), part[second + r]);                      \
      if (NIBBLES)                                                                                              \
        UNROLL for (int r = 0; r < ROWS; ++r)                                                                   \
          part[ROWS + r] = fma(high, vloadv(0, x + r * QUANT_TERMS + 16 + i), part[ROWS + r]);                  \
    }                                                                                                           \
  }
#endif
ADD_CHUNK(add_chunk, const global uchar*)
#if !BLOCKS
ADD_CHUNK(add_held_chunk, const uchar*)
#endif

#if BY_PLACE
// A chunk's terms in the order of its half bytes: those in the lowest places of words before the next ones.
INLINE void place_terms(float* x) {
  const floatv a = vloadv(0, x), b = vloadv(1, x), c = vloadv(2, x), d = vloadv(3, x);
  if (BLOCKS) {
    vstorev((floatv)(a.s0, a.s4, b.s0, b.s4, a.s2, a.s6, b.s2, b.s6), 0, x);
    vstorev((floatv)(c.s0, c.s4, d.s0, d.s4, c.s2, c.s6, d.s2, d.s6), 1, x);
    vstorev((floatv)(a.s1, a.s5, b.s1, b.s5, a.s3, a.s7, b.s3, b.s7), 2, x);
    vstorev((floatv)(c.s1, c.s5, d.s1, d.s5, c.s3, c.s7, d.s3, d.s7), 3, x);
  } else {
    vstorev((floatv)(a.s0, b.s0, c.s0, d.s0, a.s4, b.s4, c.s4, d.s4), 0, x);
    vstorev((floatv)(a.s1, b.s1, c.s1, d.s1, a.s5, b.s5, c.s5, d.s5), 1, x);
    vstorev((floatv)(a.s2, b.s2, c.s2, d.s2, a.s6, b.s6, c.s6, d.s6), 2, x);
    vstorev((floatv)(a.s3, b.s3, c.s3, d.s3, a.s7, b.s7, c.s7, d.s7), 3, x);
  }
}
#else
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
#endif

// What is read next: behind the part of a row of weights that ends at `stop` comes that of the next row.
INLINE void fetch_ahead(const global uchar* p, const global uchar* stop, ptrdiff_t jump) {
  PREFETCH(p + QUANT_AHEAD + (p + QUANT_AHEAD >= stop ? jump : 0));
}

// As quant_scale().
INLINE floatv finite_scales(floatv x) {
  const uintv exponents = as_uintv(x) & (uintv)(0x7f800000u);
  return exponents == (uintv)(0x7f800000u) ? as_floatv((uintv)(0x7fc00000u)) : x;
}

#if BLOCKS
// Blocks with scales of their own, whose halves are converted by vectors.
INLINE void add_blocks(floatv* total, const global uchar* line, const float* x, int chunks, ptrdiff_t jump,
                       floatv zeros) {
  const global uchar* stop = line + chunks * STEP_BYTES;
  floatv odd[ROWS];
  UNROLL for (int r = 0; r < ROWS; ++r) odd[r] = (floatv)(0.0f);
  for (int chunk = 0; chunk < chunks; chunk += VECTOR_WIDTH) {
    const int count = min(chunks - chunk, VECTOR_WIDTH);
    ushort halves[VECTOR_WIDTH];
    UNROLL for (int i = 0; i < VECTOR_WIDTH; ++i)
      halves[i] = as_ushort(vload2(0, line + min(i, count - 1) * STEP_BYTES));
    float factor[VECTOR_WIDTH];
    vstorev(finite_scales(JOIN(vload_half, VECTOR_WIDTH)(0, (const half*)halves)), 0, factor);
    int i = 0;
    for (; i + 2 <= count; i += 2, line += 2 * STEP_BYTES, x += 2 * QUANT_CHUNK) {
      floatv part[4 * ROWS];
      UNROLL for (int j = 0; j < 4 * ROWS; ++j) part[j] = (floatv)(0.0f);
      fetch_ahead(line, stop, jump);
      add_chunk(part, line + 2, x, zeros, 0);
      add_chunk(part + 2 * ROWS, line + STEP_BYTES + 2, x + QUANT_CHUNK, zeros, 0);
      UNROLL for (int r = 0; r < ROWS; ++r) {
        total[r] = fma((floatv)(factor[i]), part[r] + part[ROWS + r], total[r]);
        odd[r] = fma((floatv)(factor[i + 1]), part[2 * ROWS + r] + part[3 * ROWS + r], odd[r]);
      }
    }
    if (i < count) {
      floatv part[2 * ROWS];
      UNROLL for (int j = 0; j < 2 * ROWS; ++j) part[j] = (floatv)(0.0f);
      add_chunk(part, line + 2, x, zeros, 0);
      UNROLL for (int r = 0; r < ROWS; ++r)
        total[r] = fma((floatv)(factor[i]), part[r] + part[ROWS + r], total[r]);
      line += STEP_BYTES;
      x += QUANT_CHUNK;
    }
  }
  UNROLL for (int r = 0; r < ROWS; ++r) total[r] += odd[r];
}
#endif

// Up to VECTOR_WIDTH terms of a row, 0 behind `count`.
INLINE floatv input_part(const global void* input, size_t at, int count) {
  if (INPUT_TYPE != DTYPE_I8) return load_typed_part(input, at, 1, count, INPUT_TYPE);
  const global char* bytes = (const global char*)input + at;
  if (count >= VECTOR_WIDTH) return floats_of(vloadv(0, bytes));
  float part[VECTOR_WIDTH];
  ROLLED for (int i = 0; i < VECTOR_WIDTH; ++i) part[i] = i < count ? (float)bytes[i] : 0.0f;
  return vloadv(0, part);
}

INLINE float sum_of_lanes(floatv x) {
  float lanes[VECTOR_WIDTH], sum = 0.0f;
  vstorev(x, 0, lanes);
  for (int i = 0; i < VECTOR_WIDTH; ++i) sum += lanes[i];
  return sum;
}

KERNEL void quantised_product_cpu(const global void* restrict input, const global uchar* restrict weight,
                                  const global void* restrict scale, const global uchar* restrict zero,
                                  const global float* restrict input_scale,
                                  global void* restrict output, const struct QuantArgs args) {
  const uint blocks_m = (args.m + ROWS - 1) / ROWS, unit = get_group_id(0);
  const uint row0 = unit % blocks_m * ROWS, column0 = unit / blocks_m * COLUMNS;
  const int columns = (int)min(args.n - column0, (uint)COLUMNS);
  const bool is_signed = (args.features & QUANT_SIGNED) != 0u;
#if BY_TABLE || !BLOCKS
  const uchar flip = is_signed ? (NIBBLES ? 0x88 : 0x80) : 0;
#endif
  const uint middle = is_signed || FORMAT == QUANT_Q4_0 ? (NIBBLES ? 8 : 128) : 0;
#if BY_TABLE
  // What half bytes stand for, two's complement as numbers from 0 on.
  const uintv halves = (uintv)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) ^ (uintv)(flip & 15u);
  const floatv numbers = JOIN(convert_float, VECTOR_WIDTH)(halves);
#endif
  float x[ROWS * QUANT_TERMS] __attribute__((aligned(64)));
  floatv sum[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; ++i) sum[i] = (floatv)(0.0f);
  for (uint term0 = 0; term0 < args.k; term0 += QUANT_TERMS) {
    const int terms = (int)min(args.k - term0, (uint)QUANT_TERMS), chunks = (terms + QUANT_CHUNK - 1) / QUANT_CHUNK;
    for (int r = 0; r < ROWS; ++r) {
      const size_t at = args.input_offset + (size_t)min(row0 + r, args.m - 1) * args.input_row + term0;
      float* to = x + r * QUANT_TERMS;
      for (int i = 0; i < chunks * QUANT_CHUNK; i += VECTOR_WIDTH)
        vstorev(i < terms ? input_part(input, at + i, terms - i) : (floatv)(0.0f), 0, to + i);
      if (FORMAT == QUANT_NIBBLES || BY_PLACE)
        for (int chunk = 0; chunk < chunks; ++chunk) place_terms(to + chunk * QUANT_CHUNK);
    }
    const uint first_chunk = term0 / QUANT_CHUNK;
#if !BLOCKS
    const uint first_group = first_chunk / args.group, groups = (first_chunk + chunks - 1) / args.group + 1;
#endif
    for (int c = 0; c < columns; ++c) {
      const uint column = column0 + c;
      const global uchar* line =
          weight + args.weight_offset + (size_t)column * args.weight_row + (size_t)first_chunk * STEP_BYTES;
      const ptrdiff_t jump = (ptrdiff_t)args.weight_row - chunks * STEP_BYTES;
      floatv total[ROWS];
      UNROLL for (int r = 0; r < ROWS; ++r) total[r] = sum[r * COLUMNS + c];
#if BLOCKS
#if BY_TABLE
      const floatv zeros = numbers - (floatv)((float)middle);
#else
      const floatv zeros = (floatv)((float)middle);
#endif
      add_blocks(total, line, x, chunks, jump, zeros);
#else
      const global uchar* stop = line + chunks * STEP_BYTES;
      uint group = first_group;
      float factors[VECTOR_WIDTH];
      // The chunks of a group that are in this block of terms.
      for (int chunk = 0, last = (int)min((group + 1) * args.group - first_chunk, (uint)chunks); chunk < chunks;
           ++group, last = (int)min(last + args.group, (uint)chunks)) {
        const uint in_vector = (group - first_group) % VECTOR_WIDTH;
        if (in_vector == 0)
          vstorev(finite_scales(load_typed_part(scale, args.scale_offset + column * args.scale_row + group, 1,
                                                (int)min(groups - group, (uint)VECTOR_WIDTH), args.scale_type)),
                  0, factors);
        const float factor = factors[in_vector];
        uint middle_of = middle;
        if ((args.features & QUANT_ZEROS) != 0u) {
          const size_t of_zero = args.zero_offset + (size_t)column * args.zero_row + group;
          middle_of = (NIBBLES ? load_half_byte(zero, of_zero) : load_byte(zero, of_zero)) ^ middle;
        }
#if BY_TABLE
        const floatv zeros = numbers - (floatv)((float)middle_of);
#else
        const floatv zeros = (floatv)((float)middle_of);
#endif
        const float* from = x + chunk * QUANT_CHUNK;
        floatv part[4 * ROWS];
        UNROLL for (int i = 0; i < 4 * ROWS; ++i) part[i] = (floatv)(0.0f);
        const int whole = min(last, terms / QUANT_CHUNK);
        for (; chunk + 2 <= whole; chunk += 2, line += 2 * CHUNK_BYTES, from += 2 * QUANT_CHUNK) {
          fetch_ahead(line, stop, jump);
          add_chunk(part, line, from, zeros, flip);
          add_chunk(part + 2 * ROWS, line + CHUNK_BYTES, from + QUANT_CHUNK, zeros, flip);
        }
        for (; chunk < whole; ++chunk, line += CHUNK_BYTES, from += QUANT_CHUNK)
          add_chunk(part, line, from, zeros, flip);
        if (chunk < last) {
          // The last chunk of a row, of which a part is there.
          const int left = terms - chunk * QUANT_CHUNK, bytes = NIBBLES ? (left + 1) / 2 : left;
          uchar held[32] __attribute__((aligned(32)));
          for (int i = 0; i < CHUNK_BYTES; ++i) held[i] = i < bytes ? line[i] : 0;
          add_held_chunk(part, held, from, zeros, flip);
          ++chunk;
        }
        UNROLL for (int r = 0; r < ROWS; ++r)
          total[r] = fma((floatv)(factor), (part[r] + part[ROWS + r]) + (part[2 * ROWS + r] + part[3 * ROWS + r]),
                         total[r]);
      }
#endif
      UNROLL for (int r = 0; r < ROWS; ++r) sum[r * COLUMNS + c] = total[r];
    }
  }
  for (int r = 0; r < ROWS && row0 + r < args.m; ++r) {
    float factor = 1.0f;
    if ((args.features & QUANT_INPUT_SCALE) != 0u)
      factor = quant_scale(input_scale[args.input_scale_offset + (row0 + r) * args.input_scale_row]);
    for (int c = 0; c < columns; ++c)
      store_typed_steps((float4)(factor * sum_of_lanes(sum[r * COLUMNS + c])), output,
                        args.output_offset + (row0 + r) * args.output_row + column0 + c, 1, 1, args.output_type);
  }
}
