// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>
#include <thread>

namespace tessera::tool {

// While it lives, SIGINT, SIGTERM and SIGHUP have `act` called with the signal, on a thread of its
// own, and the process end with exit code 128 + signal, whatever its other threads are at. Signals
// that the process was started to ignore stay ignored. To be made before other threads are.
class OnSignal {
 public:
  explicit OnSignal(std::function<void(int)> act);
  ~OnSignal();
  OnSignal(const OnSignal&) = delete;
  OnSignal& operator=(const OnSignal&) = delete;

 private:
  void wait();

  std::function<void(int)> act_;
  sigset_t waited_{}, before_{};
  std::thread thread_;
};

}  // namespace tessera::tool
