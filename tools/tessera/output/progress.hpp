// SPDX-License-Identifier: Apache-2.0
// What a long job says meanwhile, on stderr: a line that is overwritten on a terminal, plain lines
// elsewhere.
#pragma once

#include <chrono>
#include <string>

namespace tessera::tool {

class Progress {
 public:
  Progress();
  ~Progress();  // wipes the overwritten line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The present state, with the part done from 0 to 1, negative = unknown. On a terminal at most
  // twenty times a second; elsewhere nothing: logs get milestones only.
  void update(const std::string& text, double part = -1);
  // Something that stays: a line of its own on both.
  void milestone(const std::string& text);
  // Before anything else writes to the terminal.
  void wipe();

  // Results that better ones replace: what is written to std::cout and as milestones after begin()
  // is gone after erase(), where both are the same terminal. Elsewhere, and where it has scrolled
  // away, it stays; false = all of it stays.
  void begin_draft();
  void count_draft(const std::string& text);  // was written to std::cout
  bool erase_draft();

 private:
  bool terminal_;
  bool drawn_ = false;
  bool draft_ = false;
  std::size_t draft_lines_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace tessera::tool
