// SPDX-License-Identifier: Apache-2.0
// What the records of the family share. An operation describes its operands and options, and
// forward_record() or backward_record() adds how it is checked, computed and tested.
#pragma once

#include <iterator>
#include <string>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::operations::attention {

inline const std::vector<DType> kStorage{DType::kF32, DType::kF16, DType::kBF16};

Operand input(std::string name, std::string shape, std::string doc);
Operand optional_input(std::string name, std::string shape, std::vector<DType> dtypes,
                       std::string doc);
Operand output(std::string name, std::string shape, std::string doc);
Operand log_sum_exp(Role role, bool optional);
// Query, key and value; `packable`: cum_seqlens may say where sequences begin.
std::vector<Operand> rows(bool packable);
// Keys or values as floats, or as codes of the types that an operation lists beside them.
Operand stored(std::string name, std::string shape, std::string doc);
Operand scale(std::string name, std::string of, std::string shape);
std::vector<StorageTypes> stored_types(const std::string& query, const std::string& key);
Operand mask();
Operand bias();
Operand sinks();
Operand lengths(std::string name, std::string of);

std::vector<OptionInfo> band_options();
OptionInfo soft_cap();
std::vector<OptionInfo> dropout();

template <class T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Operation forward_record(Operation described);
Operation backward_record(Operation described);

// Of operations whose keys lie in pages: `sequences` says what one of them is.
std::vector<Operand> tables(const std::string& sequences);
std::vector<ErrorKind> table_errors(bool packed);
OptionInfo token_window();
OptionInfo splits();
Operation paged_record(Operation described);
Operation ragged_decode_record(Operation described);

}  // namespace tessera::operations::attention
