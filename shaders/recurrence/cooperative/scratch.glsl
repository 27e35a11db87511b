// SPDX-License-Identifier: Apache-2.0
// What the passes of the variant "cooperative" leave each other in scratch, and where sequences are. States lie transposed:
// of each value dim a row of key dims.
#ifndef TESSERA_RECURRENCE_COOPERATIVE_SCRATCH_GLSL
#define TESSERA_RECURRENCE_COOPERATIVE_SCRATCH_GLSL

#define RECUR_HAS(feature) ((args.features & (feature)) != 0u)
#define STATE_SIZE (KEY_DIM * VALUE_DIM)
// The largest element.
#if DTYPE == DTYPE_F16
#define LARGEST 65504.0
#else
#define LARGEST 3.38953139e38
#endif

layout(std430, binding = 9) buffer Scratch { uint scratch_words[]; };
layout(std430, binding = 9) buffer ScratchFloats { float scratch_floats[]; };
layout(std430, binding = 9) buffer ScratchVectors { vec4 scratch_vectors[]; };
layout(std430, binding = 9) buffer ScratchPairs { uvec2 scratch_pairs[]; };
layout(std430, binding = 9) readonly buffer ScratchEights { uvec4 scratch_eights[]; };
#ifndef RECUR_ARGS_BINDING
#define RECUR_ARGS_BINDING 10
#endif
BUFFER_ARGS(RecurArgs, RECUR_ARGS_BINDING);

// Of a chunk in a head: what it makes of an empty state, in floats; the state before it, in elements; the factors of key
// dims over it; whether it is not for matrices. Of a sequence in a head: the last state; the same mark.
#define CHUNK_STATE(chunk) (4u * args.span_states + (chunk) * STATE_SIZE)
#define CHUNK_KEPT(chunk) (8u * args.kept + (chunk) * STATE_SIZE)
#define CHUNK_FACTORS(chunk) (args.span_factors + (chunk) * KEY_DIM)
#define CHUNK_MARK(chunk) scratch_words[args.inner + (chunk)]
#define LAST_STATE(unit) (4u * args.tiles + (unit) * STATE_SIZE)
#define UNIT_MARK(unit) scratch_words[RECUR_MARK_PLACE(unit)]

uint sequence, head;
uint batch, begin, end;  // tokens [begin, end) of the batch entry are the sequence's

uint boundary(uint i) { return scratch_words[args.boundaries + i]; }
void find_sequence() {
  const bool packed = RECUR_HAS(RECUR_PACKED);
  batch = packed ? 0u : sequence;
  begin = packed ? boundary(sequence) : 0u;
  end = packed ? boundary(sequence + 1u) : args.tokens;
}
// Of all heads: the first of the sequence.
uint first_slot() { return RECUR_COOP_FIRST_CHUNK(batch * args.tokens + begin, sequence); }

#endif  // TESSERA_RECURRENCE_COOPERATIVE_SCRATCH_GLSL
