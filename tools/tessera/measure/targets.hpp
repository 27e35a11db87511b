// SPDX-License-Identifier: Apache-2.0
// What a command works on: devices, operations, dtypes and cases, from the words of the command
// line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/command_line.hpp"
#include "tessera/context.hpp"
#include "tessera/device.hpp"
#include "tessera/record.hpp"

namespace tessera::tool {

// The devices that the selectors name, each once. Without a selector TESSERA_DEVICE, else every
// device but the host; where nothing but the host exists, the host, and stderr says so. Throws
// NoDevice.
std::vector<DeviceInfo> target_devices(const std::vector<std::string>& selectors);
// Adds --device, which may be repeated, for target_devices().
void add_device_option(App& app, std::vector<std::string>& devices);
// `precision` as the word of --precision; empty: as the environment says. Throws UsageError.
Context open_device(const DeviceInfo& device, const std::string& precision = {});
void add_precision_option(App& app, std::string& precision);
std::optional<Precision> parse_precision_option(const std::string& name);  // throws UsageError
std::string device_label(const DeviceInfo& device);                        // "[0] opencl:NAME"
std::string device_tag(const DeviceInfo& device);  // "0:opencl", for narrow columns

// One operation, or all where `name` is empty. Throws UsageError.
std::vector<const Operation*> target_operations(const std::string& name);
const Variant& find_variant(const Operation& operation,
                            const std::string& name);  // throws UsageError

// The word of --dtype where operands are converted to it: f32, f16 or bf16. Throws UsageError.
std::optional<DType> parse_dtype_option(const std::string& name);
// What calls of the operation may be stored in: its combinations of dtypes, or each dtype of its
// floating operands. `name`: only that one; empty = all.
std::vector<StorageTypes> storage_types(const Operation& operation);
std::vector<StorageTypes> target_types(const Operation& operation, const std::string& name);
// Of --dtype where it is such a name.
inline constexpr const char* kTypesHelp =
    "Only these storage types: f32, f16, bf16, or a combination of 'tessera run --list'";
// Throws UsageError where no operation has storage types of that name.
void require_types(const std::string& name);

// NAME=VALUE words as options of the operation. Throws UsageError.
Options parse_options(const Operation& operation, const std::vector<std::string>& words);
// The two sides of NAME=VALUE. Throws UsageError naming the option that holds the word.
std::pair<std::string, std::string> split_word(const std::string& word, const char* option);

// The call that a case makes up. Throws what Operation::validate throws.
Problem problem_of(const Operation& operation, const Case& shape);

// The benchmark case called `only`, or else those whose name contains it.
std::vector<Case> benchmark_cases(const Operation& operation, const StorageTypes& types,
                                  const std::string& only);
// Cases from the words of --shapes: a part of a benchmark case's name, or
// OPERAND=4x128x64,OPERAND=… for every required input. Throws UsageError.
std::vector<Case> shape_cases(const Operation& operation, const StorageTypes& types,
                              const std::vector<std::string>& words, const Options& options);

}  // namespace tessera::tool
