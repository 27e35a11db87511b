// SPDX-License-Identifier: Apache-2.0
// Everything that Tessera throws is an Error. The standard library throws std::bad_alloc and
// std::length_error from anywhere: each public function that may meet one is a function-try-block,
// whose handler ends in rethrow_as_error().
#pragma once

namespace tessera {

[[noreturn]] void throw_out_of_host_memory();  // needs no memory itself

// In a handler: OutOfHostMemory for what the standard library throws where memory or an index type
// ends, the exception itself otherwise: an Error, or what a caller's own function threw.
[[noreturn]] void rethrow_as_error();

}  // namespace tessera
