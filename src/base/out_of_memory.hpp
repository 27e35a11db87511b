// SPDX-License-Identifier: Apache-2.0
// Everything that Tessera throws is an Error. The public functions catch the std::bad_alloc that
// the standard library throws from anywhere, and throw this in its place.
#pragma once

namespace tessera {

[[noreturn]] void throw_out_of_host_memory();  // needs no memory itself

}  // namespace tessera
