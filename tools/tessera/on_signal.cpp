// SPDX-License-Identifier: Apache-2.0
#include "tessera/on_signal.hpp"

#include <unistd.h>

#include <utility>

namespace tessera::tool {
namespace {

constexpr int kDone = SIGUSR2;  // sent to the thread alone when it is no longer needed

}  // namespace

OnSignal::OnSignal(std::function<void(int)> act) : act_(std::move(act)) {
  sigemptyset(&waited_);
  sigaddset(&waited_, kDone);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
      sigaddset(&waited_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &waited_, &before_);
  thread_ = std::thread([this] { wait(); });
}

OnSignal::~OnSignal() {
  pthread_kill(thread_.native_handle(), kDone);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void OnSignal::wait() {
  int signal = 0;
  while (sigwait(&waited_, &signal) != 0) {
  }
  if (signal == kDone) return;
  act_(signal);
  // Not exit(): destructors would meet threads that are still at work.
  _exit(128 + signal);
}

}  // namespace tessera::tool
