// SPDX-License-Identifier: Apache-2.0
// Text that is not ours on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// The text with everything escaped that a terminal would obey or that would forge a line: control
// characters (C0, DEL, C1), line and paragraph separators, marks that turn the direction of
// writing, and bytes that are no UTF-8. "\n", "\r" and "\t" appear as such, the others as "\x1b" or
// "\u202e".
std::string printable(std::string_view text);

// The same of each line of a text of ours that has lines and tabs.
std::string printable_lines(std::string_view text);

}  // namespace tessera
