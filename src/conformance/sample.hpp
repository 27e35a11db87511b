// SPDX-License-Identifier: Apache-2.0
// Which cases a check takes of a variant, and in which configuration.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/program_name.hpp"
#include "tessera/record.hpp"

namespace tessera::conformance {

// A case that a variant takes.
struct Candidate {
  std::size_t number = 0;  // in the operation's table
  Problem problem{};
  std::vector<Config> configs{};  // that it may run in, the one that it would choose first
  Config config{};                // that it does run in
};

// Two configurations that suffice for the cases: those that are `pinned` already, then the most
// asked for. Every case takes its own where that is one of them, else one of them that does not
// refuse it, else its own. Sets Candidate::config and completes `pinned`.
void pin_configs(std::vector<Candidate>& candidates, std::vector<Config>& pinned,
                 const std::function<bool(const Candidate&, const Config&)>& accepted);

// Leaves out combinations in which every operand has a dtype that it had in one before.
void leave_out_repetitions(std::vector<StorageTypes>& types);

// Whether the case of this number is worth a look: of the first storage types each where the
// variant is chosen, and the case made for it, every fifth where one of the two does not hold,
// every 25th where neither does.
bool is_in_sample(std::size_t number, bool first_types, bool asked);

using Programs = std::vector<runtime::ProgramName>;  // of a case

// Programs that a check needs.
struct Built {
  std::set<std::string> programs{}, kernels{};           // ProgramName::key() and ::kernel
  std::map<std::string, std::set<std::string>> types{};  // of a function: those it was built in
  std::map<std::string, std::set<std::string>> codes{};  // likewise, of operands: "CODE_TYPE=7"
  std::set<std::string> values{};  // "norms/rows.cl|norm_rows|DTYPE=0 ALIGNED=1"

  void add(const runtime::ProgramName& program);
};

// Whether all that a case needs is there: its functions in its types, its kernels, if with other
// values, or its programs.
bool has_types(const Built& built, const Programs& programs);
bool has_kernels(const Built& built, const Programs& programs);
bool has_programs(const Built& built, const Programs& programs);

// Whether a kernel has an axis for its storage type.
bool have_storage_axis(const std::vector<Programs>& needs);

// Of the storage types behind the first, the one at hand; functions are dealt to them by their
// families, for a call needs several of one, and the same kernel in OpenCL C and in GLSL gets
// neighbours: f16 here, bf16 there. Kernels of processors, which have no such twin, are built in
// each where an axis tells them apart.
struct Share {
  std::size_t number = 0, count = 1;
};

// Whether a program brings a type of an operand that its function was not built for yet.
bool brings_codes(const Programs& programs, const Built& built);

// Whether a program is for large values, above 256, and its function was built for none yet; or,
// where there is a share, is of a function with a storage axis that is dealt to it and was not
// built in its other types.
bool is_missing(const Programs& programs, const std::optional<Share>& share, const Built& built);

struct Worth {
  bool kernels = true;           // those of which none was built yet
  std::optional<Share> share{};  // of the storage type, where it is not the first
  std::size_t more = 0;          // programs, for other values
  bool one_at_least = true;      // case, whatever it takes
};

// Of cases by what they need built, those that are worth it. Every kernel, a function with its
// axes, of which none was built yet is built once, for the case whose programs most others need as
// well; in storage types behind the first, functions that have been built in one type only are,
// whatever their other axes. Then so many `more` programs go to the cases that bring the most
// values which no program of the same function and storage type has yet: a mode, an alignment, a
// head dim or tile of another class. The classes are each number up to 8, multiples of 64, of 8,
// others, and all above 256, which come first. Of the other cases those whose programs are there
// are kept, and one where that would be none and one is wanted. Adds to `built`. The result says
// for each whether it is kept.
std::vector<bool> sample_of(const std::vector<Programs>& needs, const Worth& worth, Built& built);

}  // namespace tessera::conformance
