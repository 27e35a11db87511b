// SPDX-License-Identifier: Apache-2.0
// Which tokens make which mean. Index tensors may hold anything: what comes out lies within the
// operands. Whoever includes this has declared the bindings that it reads: lengths, mask_words,
// cu_seqlens, scratch.
#ifndef TESSERA_POOLING_POOLS_GLSL
#define TESSERA_POOLING_POOLS_GLSL

#define NO_ROW 0xffffffffu

// The row of y that tokens [begin, end) of a batch entry belong to.
struct Pool {
  uint row, begin, end;
};

// The last of `count` numbers that is at most `value`, if they ascend; some index below `count` if
// they don't.
#define LAST_AT_MOST(name, numbers, first, stride)         \
  uint name(uint count, int value) {                       \
    uint low = 0u, high = count;                           \
    while (high - low > 1u) {                              \
      const uint middle = low + (high - low) / 2u;         \
      if (numbers[(first) + middle * (stride)] <= value) { \
        low = middle;                                      \
      } else {                                             \
        high = middle;                                     \
      }                                                    \
    }                                                      \
    return low;                                            \
  }

Pool pool_of_sequence(uint sequence) {
  if (sequence >= args.sequences) return Pool(NO_ROW, 0u, 0u);
  const uint at = args.index_offset + sequence * args.index_stride;
  const int begin = clamp(cu_seqlens[at], 0, int(args.tokens));
  return Pool(sequence, uint(begin),
              uint(clamp(cu_seqlens[at + args.index_stride], begin, int(args.tokens))));
}

#ifdef POOLS_OF_ROWS
LAST_AT_MOST(sequence_of_row, scratch, 0u, 1u)

Pool pool_of_row(uint batch, uint row) {
  Pool pool = Pool(row, 0u, args.tokens);
  if (args.pool == POOL_CHUNKS) {
    pool.begin = row * args.chunk;
    pool.end = min(pool.begin + args.chunk, args.tokens);
  } else if (args.pool == POOL_LENGTHS) {
    pool.end =
        uint(clamp(lengths[args.index_offset + batch * args.index_stride], 0, int(args.tokens)));
  } else if (args.pool == POOL_SEQUENCES) {
    pool = pool_of_sequence(row);
  } else if (args.pool == POOL_SEQUENCE_CHUNKS) {
    const uint sequence = sequence_of_row(args.sequences, int(row));
    pool = pool_of_sequence(sequence);
    const uint chunks = (pool.end - pool.begin + args.chunk - 1u) / args.chunk;
    const uint chunk = pool.row == NO_ROW ? 0u : row - uint(scratch[sequence]);
    pool.begin = chunk < chunks ? pool.begin + chunk * args.chunk : pool.end;
    pool.end = min(pool.begin + args.chunk, pool.end);
    pool.row = row;
  }
  return pool;
}
#endif

#ifdef POOLS_OF_TOKENS
LAST_AT_MOST(sequence_of_token, cu_seqlens, args.index_offset, args.index_stride)

// The pool that a token belongs to, or with NO_ROW tokens that belong to none; `token` is in
// [begin, end) either way.
Pool pool_of_token(uint batch, uint token) {
  Pool pool = Pool(0u, 0u, args.tokens);
  if (args.pool == POOL_CHUNKS) {
    pool.row = token / args.chunk;
    pool.begin = pool.row * args.chunk;
    pool.end = min(pool.begin + args.chunk, args.tokens);
  } else if (args.pool == POOL_LENGTHS) {
    const uint tokens =
        uint(clamp(lengths[args.index_offset + batch * args.index_stride], 0, int(args.tokens)));
    pool = token < tokens ? Pool(0u, 0u, tokens) : Pool(NO_ROW, tokens, args.tokens);
  } else if (args.pool >= POOL_SEQUENCES) {
    const uint sequence = sequence_of_token(args.sequences, int(token));
    pool = pool_of_sequence(sequence);
    if (token < pool.begin || token >= pool.end) {
      pool = Pool(NO_ROW, token, token + 1u);
    } else if (args.pool == POOL_SEQUENCE_CHUNKS) {
      const uint chunk = (token - pool.begin) / args.chunk;
      pool.row = uint(scratch[sequence]) + chunk;
      pool.begin += chunk * args.chunk;
      pool.end = min(pool.begin + args.chunk, pool.end);
      if (pool.row >= args.rows) pool.row = NO_ROW;
    }
  }
  return pool;
}
#endif

// The mask is read by words, which needs no 8-bit access; buffers end at a multiple of 4 bytes.
bool is_counted(uint batch, uint token) {
  if (MASKED == 0) return true;
  const uint at = args.index_offset + batch * args.index_stride + token * args.mask_stride;
  return (mask_words[at / 4u] >> (at % 4u * 8u) & 0xffu) != 0u;
}

float reciprocal_of(uint count) { return count == 0u ? 0.0 : 1.0 / float(count); }

#endif  // TESSERA_POOLING_POOLS_GLSL
