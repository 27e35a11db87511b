// SPDX-License-Identifier: Apache-2.0
// A child process inherits the driver's handles but not its threads: PoCL's first enqueue there
// waits for ever. So what was opened before a fork() is refused after it, and its handles are
// forgotten instead of released.
#pragma once

namespace tessera::device::opencl {

unsigned fork_count() noexcept;  // how many fork()s led to this process since the first call

}  // namespace tessera::device::opencl
