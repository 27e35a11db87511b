// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tessera::tool {
namespace {

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

// The first `width` code points.
std::string cut(const std::string& text, std::size_t width) {
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U) continue;
    if (++seen > width) break;
  }
  return text.substr(0, at);
}

}  // namespace

Progress::Progress() : terminal_(stderr_is_terminal()) {}

Progress::~Progress() { wipe(); }

void Progress::update(const std::string& text, double part) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && now - last_ < std::chrono::milliseconds(50)) return;
  last_ = now;
  std::string line;
  if (part >= 0) {
    constexpr std::size_t kBar = 20;
    const double share = std::min(part, 1.0);
    const auto done = static_cast<std::size_t>(std::lround(share * kBar));
    line = '[' + std::string(done, '#') + std::string(kBar - done, '.') + "] " +
           std::to_string(static_cast<int>(share * 100)) + "% ";
  }
  line += text;
  std::fprintf(stderr, "\r\x1b[K%s", cut(line, terminal_width() - 1).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::milestone(const std::string& text) {
  wipe();
  std::fprintf(stderr, "%s\n", text.c_str());
}

void Progress::wipe() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace tessera::tool
