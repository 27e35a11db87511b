// SPDX-License-Identifier: Apache-2.0
// Files as damage and malice leave them, drawn from seeds.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace tessera::testing {

// How many of each kind a test tries. Seeds go on where tests are repeated: --gtest_repeat=20 tries
// others each time.
inline constexpr int kMutations = 300;

class Mutations {
 public:
  std::uint64_t seed() const { return seed_; }
  // One to four changes: bits, bytes, cuts, repeats, foreign pieces.
  std::string next(std::string text) {
    random_.seed(++seed_);
    for (std::size_t count = 1 + below(4); count > 0; --count) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  void change(std::string& text) {
    constexpr std::array<std::string_view, 18> kPieces{"-1",
                                                       "0",
                                                       "1e999",
                                                       "nan",
                                                       "9223372036854775808",
                                                       "18446744073709551616",
                                                       "null",
                                                       "[]",
                                                       "{}",
                                                       "\"\"",
                                                       "1.5",
                                                       "\x1b[2J",
                                                       "\xff",
                                                       "\n",
                                                       ",",
                                                       "}",
                                                       "\\u0000",
                                                       "'"};
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min<std::size_t>(below(64), text.size() - at);
    switch (below(7)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(at, length));
        break;
      case 2:
        text.insert(at, text.substr(below(text.size() + 1), length));
        break;
      case 3:
        text.replace(at, std::min(length, below(8)), kPieces[below(kPieces.size())]);
        break;
      case 4:
        text.resize(at);
        break;
      case 5:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ 1 << below(8));
    }
  }

  inline static std::uint64_t seed_ = 0;
  std::mt19937_64 random_;
};

}  // namespace tessera::testing
