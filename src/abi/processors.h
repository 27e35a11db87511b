// SPDX-License-Identifier: Apache-2.0
// What shaders are told of processors. Included by C++ and GLSL.
#ifndef TESSERA_ABI_PROCESSORS_H
#define TESSERA_ABI_PROCESSORS_H

// The id of a specialization constant: true where the device is a processor.
#define ON_PROCESSOR_ID 60

#endif  // TESSERA_ABI_PROCESSORS_H
