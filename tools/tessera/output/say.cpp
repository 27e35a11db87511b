// SPDX-License-Identifier: Apache-2.0
#include "tessera/output/say.hpp"

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <streambuf>

#include "base/printable.hpp"

namespace tessera::tool {

void note(const std::string& text) {
  std::fprintf(stderr, "tessera: %s\n", printable(text).c_str());
}

void note_lines(const std::string& text) {
  std::fprintf(stderr, "tessera: %s\n", printable_lines(text).c_str());
}

std::string one_line(const std::string& text) {
  std::string line;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n') {
      line += text[i];
      continue;
    }
    i = std::min(text.find_first_not_of(" \n", i), text.size()) - 1;
    if (i + 1 < text.size()) line += line.ends_with(':') ? " " : "; ";
  }
  return line;
}

class EscapedOutput::Buffer : public std::streambuf {
 public:
  explicit Buffer(std::streambuf* target) : target_(target) {}
  std::streambuf* target() const { return target_; }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    line_ += traits_type::to_char_type(c);
    if (line_.back() == '\n' && !drain()) return traits_type::eof();
    return c;
  }

  std::streamsize xsputn(const char* text, std::streamsize count) override {
    line_.append(text, static_cast<std::size_t>(count));
    const bool whole = line_.find('\n') != std::string::npos;
    return whole && !drain() ? 0 : count;
  }

  int sync() override { return drain() && target_->pubsync() == 0 ? 0 : -1; }

 private:
  bool drain() {
    const std::string text = printable_lines(line_);
    line_.clear();
    const auto size = static_cast<std::streamsize>(text.size());
    return target_->sputn(text.data(), size) == size;
  }

  std::streambuf* target_;
  std::string line_;
};

EscapedOutput::EscapedOutput(std::ostream& stream)
    : stream_(stream), buffer_(std::make_unique<Buffer>(stream.rdbuf())) {
  stream_.rdbuf(buffer_.get());
}

EscapedOutput::~EscapedOutput() {
  stream_.flush();
  stream_.rdbuf(buffer_->target());
}

}  // namespace tessera::tool
