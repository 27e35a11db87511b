// SPDX-License-Identifier: Apache-2.0
#include "tessera/output/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "base/printable.hpp"
#include "tessera/output/table.hpp"

namespace tessera::tool {
namespace {

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

struct Extent {
  std::size_t columns = 80, rows = 24;
};

Extent terminal_size() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20 || size.ws_row < 2)
    return {};
  return {size.ws_col, size.ws_row};
}

// What the lines of a text take when long ones go on below.
std::size_t screen_lines(const std::string& text) {
  const std::size_t columns = terminal_size().columns;
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t width = display_width(std::string_view(text).substr(at, end - at));
    lines += std::max<std::size_t>(1, (width + columns - 1) / columns);
    at = end + 1;
  }
  return lines;
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
  line += printable(text);
  std::fprintf(stderr, "\r\x1b[K%s", cut(line, terminal_size().columns - 1).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::milestone(const std::string& text) {
  wipe();
  const std::string shown = printable_lines(text) + '\n';
  std::fputs(shown.c_str(), stderr);
  count_draft(shown);
}

void Progress::begin_draft() {
  draft_ = terminal_ && isatty(STDOUT_FILENO) == 1;
  draft_lines_ = 0;
}

void Progress::count_draft(const std::string& text) {
  if (draft_) draft_lines_ += screen_lines(text);
}

bool Progress::erase_draft() {
  if (!draft_) return false;
  wipe();
  std::cout.flush();
  const std::size_t up = std::min(draft_lines_, terminal_size().rows - 1);
  if (up > 0) std::fprintf(stderr, "\r\x1b[%zuA\x1b[J", up);
  std::fflush(stderr);
  draft_ = false;
  return true;
}

void Progress::wipe() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace tessera::tool
