// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera {

// The calling thread's own T, or null once its destructor has run: static variables are destroyed
// after the main thread's, and what they destroy or call may come here.
template <class T>
T* of_this_thread() {
  thread_local bool gone = false;  // has no destructor, so it can be read to the thread's end
  struct Holder {
    ~Holder() { gone = true; }
    T value{};
  };
  if (gone) return nullptr;
  thread_local Holder holder;
  return &holder.value;
}

}  // namespace tessera
