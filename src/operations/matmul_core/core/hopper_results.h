// SPDX-License-Identifier: Apache-2.0
// Values of the constant RESULT of kernels for Hopper: elements of any type and place, one after
// the other; or by tensor copies, of f16, of bf16, or floats or integers of 32 bits. Read by C++
// and OpenCL C.
#ifndef TESSERA_OPERATIONS_MATMUL_CORE_CORE_HOPPER_RESULTS_H
#define TESSERA_OPERATIONS_MATMUL_CORE_CORE_HOPPER_RESULTS_H

#define HOPPER_ANY_RESULT 0
#define HOPPER_F16 1
#define HOPPER_BF16 2
#define HOPPER_WORDS 3

// Bits of FEATURES, beside those of args.h: one scale for all columns; and b has 2 n columns, those
// of a gate, which is activated, and those of up, which it multiplies.
#define HOPPER_ONE_SCALE_B 1048576u
#define HOPPER_HALVES 2097152u

// Bits of the constant BLOCKS: which factors have scales beside those of blocks of terms.
#define HOPPER_BLOCKS_OF_A 1u
#define HOPPER_BLOCKS_OF_B 2u

#endif  // TESSERA_OPERATIONS_MATMUL_CORE_CORE_HOPPER_RESULTS_H
