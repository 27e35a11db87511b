// SPDX-License-Identifier: Apache-2.0
// Every text that is not a result goes to stderr through here; results go to std::cout. Neither
// lets through what a terminal would obey: names from files, drivers and the environment are not
// ours.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>

namespace tessera::tool {

// "tessera: text", one line.
void note(const std::string& text);
// A text of several lines as it is, such as a compiler's log.
void note_lines(const std::string& text);
// A list over several lines, as the library writes refusals, as one sentence.
std::string one_line(const std::string& text);

// While it lives, what is written to the stream comes out with everything but newlines and tabs
// escaped that a terminal would obey, whole lines at a time.
class EscapedOutput {
 public:
  explicit EscapedOutput(std::ostream& stream);
  ~EscapedOutput();
  EscapedOutput(const EscapedOutput&) = delete;
  EscapedOutput& operator=(const EscapedOutput&) = delete;

 private:
  class Buffer;
  std::ostream& stream_;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace tessera::tool
