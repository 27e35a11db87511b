// SPDX-License-Identifier: Apache-2.0
// tessera run
#include <algorithm>
#include <iostream>
#include <set>

#include "base/printable.hpp"
#include "tessera/commands/commands.hpp"
#include "tessera/files/convert.hpp"
#include "tessera/files/tensor_files.hpp"
#include "tessera/measure/catalogue.hpp"
#include "tessera/measure/targets.hpp"
#include "tessera/output/report.hpp"
#include "tessera/output/say.hpp"
#include "tessera/output/usage.hpp"

namespace tessera::tool {
namespace {

struct RunArguments {
  std::string operation;
  std::vector<std::string> inputs, input_files, outputs, wanted, options;
  std::string output_file, dtype, device, variant, config, precision;
  bool explain = false, json = false, list = false, markdown = false;
};

using Path = std::filesystem::path;
using NamedFiles = std::map<std::string, Path, std::less<>>;

std::string join(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

// NAME=FILE words, each naming an operand that is read, or one that is written, once.
NamedFiles named_files(const Operation& operation, const std::vector<std::string>& words,
                       bool (*is_right)(Role), const char* option) {
  NamedFiles files;
  for (const std::string& word : words) {
    const auto [name, file] = split_word(word, option);
    const std::size_t slot = as_usage([&, &name = name] { return operation.slot(name); });
    const Role role = operation.operands[slot].role;
    if (!is_right(role)) {
      throw UsageError(std::string(option) + ": '" + name + "' is an " +
                       std::string(to_string(role)) + " of " + operation.name);
    }
    if (!files.emplace(name, file).second) {
      throw UsageError(std::string(option) + " names '" + name + "' twice");
    }
  }
  return files;
}

// Is it one file, by whatever path or link? One that does not exist yet is no other's.
bool same_file(const Path& a, const Path& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

// Results are never written over what they were made of.
void refuse_inputs_as_outputs(const Operation& operation, const RunArguments& arguments) {
  std::vector<Path> inputs(arguments.input_files.begin(), arguments.input_files.end());
  for (const auto& [name, file] : named_files(operation, arguments.inputs, is_read, "--input")) {
    inputs.push_back(file);
  }
  std::vector<Path> outputs;
  if (!arguments.output_file.empty()) outputs.emplace_back(arguments.output_file);
  for (const auto& [name, file] :
       named_files(operation, arguments.outputs, is_written, "--output")) {
    outputs.push_back(file);
  }
  for (const Path& output : outputs) {
    for (const Path& input : inputs) {
      if (!same_file(output, input)) continue;
      const bool one_name = output == input;
      throw UsageError("the output " + quote(output.string()) + " is " +
                       (one_name ? "an input" : "the input " + quote(input.string())) +
                       ", which would be lost; write to another file");
    }
  }
}

// Tensors by operand slot.
using Inputs = std::map<std::size_t, FileTensor>;

void add_input(const Operation& operation, Inputs& inputs, const std::string& name,
               FileTensor tensor) {
  if (!inputs.emplace(operation.slot(name), std::move(tensor)).second) {
    throw UsageError("input '" + name + "' is given twice");
  }
}

Inputs read_inputs(const Operation& operation, const RunArguments& arguments) {
  Inputs inputs;
  const NamedFiles files = named_files(operation, arguments.inputs, is_read, "--input");
  for (const auto& [name, file] : files) add_input(operation, inputs, name, read_npy(file));
  std::string spare;  // what the safetensors files hold besides
  for (const std::string& file : arguments.input_files) {
    for (auto& [name, tensor] : read_safetensors(file)) {
      const auto found = std::find_if(
          operation.operands.begin(), operation.operands.end(),
          [&, &name = name](const Operand& o) { return o.name == name && is_read(o.role); });
      if (found == operation.operands.end()) {
        note("tensor " + quote(name) + " of " + quote(file) + " is no input of " + operation.name +
             " and is not used");
        spare += (spare.empty() ? "" : ", ") + quote(name);
      } else {
        add_input(operation, inputs, name, std::move(tensor));
      }
    }
  }
  for (std::size_t slot = 0; slot < operation.operands.size(); ++slot) {
    const Operand& operand = operation.operands[slot];
    if (is_read(operand.role) && !operand.optional && !inputs.contains(slot)) {
      std::string hint = "; give --input " + operand.name + "=FILE.npy";
      if (!arguments.input_files.empty()) {
        hint = "; no tensor of --inputs is called '" + operand.name + "'" +
               (spare.empty() ? "" : " (there are also " + spare + ")") +
               ": give it that name there, or" + hint.substr(1);
      }
      throw UsageError(operation.name + " needs input '" + operand.name + "' " + operand.shape +
                       hint);
    }
  }
  return inputs;
}

std::optional<DType> asked_dtype(const Operation& operation, const std::string& asked) {
  const std::optional<DType> dtype = parse_dtype_option(asked);
  if (!dtype) return dtype;
  const bool is_taken = std::ranges::any_of(operation.operands, [&](const Operand& operand) {
    return is_read(operand.role) && std::ranges::count(operand.dtypes, *dtype) != 0;
  });
  if (!is_taken) {
    throw UsageError(operation.name + " does not compute in " + asked);
  }
  return dtype;
}

// What integers become where floating values are wanted: as the first floating input, in the order
// of the operands.
DType first_dtype(const Inputs& inputs) {
  for (const auto& [slot, tensor] : inputs) {
    switch (tensor.type) {
      case ElementType::kF16:
        return DType::kF16;
      case ElementType::kBF16:
        return DType::kBF16;
      case ElementType::kF32:
      case ElementType::kF64:
        return DType::kF32;
      default:
        break;
    }
  }
  return DType::kF32;
}

struct HostInput {
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};

// Fills `changed` with the operands whose values were changed to another type, "bias f32 to bf16".
std::map<std::size_t, HostInput> convert_inputs(const Operation& operation, Inputs inputs,
                                                std::optional<DType> asked,
                                                std::vector<std::string>& changed) {
  const DType otherwise = first_dtype(inputs);
  std::map<std::size_t, HostInput> converted;
  for (auto& [slot, tensor] : inputs) {
    const Operand& operand = operation.operands[slot];
    const DType target = operand_dtype(operand, tensor.type, asked, otherwise);
    if (!is_stored_as(tensor.type, target) && is_floating(element_type(target))) {
      changed.push_back(operand.name + ' ' + std::string(to_string(tensor.type)) + " to " +
                        std::string(to_string(target)));
    }
    Converted result;
    if (is_stored_as(tensor.type, target)) {
      result.bytes = std::move(tensor.bytes);
    } else {
      result = convert(tensor, target, "input '" + operand.name + "'");
    }
    if (result.overflowed > 0) {
      note(std::to_string(result.overflowed) + " values of input '" + operand.name +
           "' are infinite as " + std::string(to_string(target)));
    }
    tensor.bytes = {};
    converted.emplace(slot, HostInput{target, std::move(tensor.shape), std::move(result.bytes)});
  }
  return converted;
}

struct Targets {
  NamedFiles files;                 // .npy by output
  Path safetensors;                 // empty = none
  std::vector<std::string> wanted;  // optional outputs to ask for
  std::set<std::string> in_file;    // outputs that go to `safetensors`
  bool any() const { return !files.empty() || !safetensors.empty(); }
};

Targets parse_targets(const Operation& operation, const RunArguments& arguments) {
  Targets targets{named_files(operation, arguments.outputs, is_written, "--output"),
                  arguments.output_file,
                  arguments.wanted,
                  {arguments.wanted.begin(), arguments.wanted.end()}};
  if (!arguments.wanted.empty() && arguments.output_file.empty() && !arguments.explain) {
    throw UsageError("--want says what else goes to --outputs FILE.safetensors; give that too");
  }
  for (const Operand& operand : operation.operands) {
    if (is_written(operand.role) && !operand.optional) targets.in_file.insert(operand.name);
  }
  std::vector<Path> seen;
  if (!targets.safetensors.empty()) seen.push_back(targets.safetensors);
  for (const auto& [name, file] : targets.files) {
    targets.wanted.push_back(name);
    const auto taken = [&, &file = file](const Path& other) {
      return other.lexically_normal() == file.lexically_normal() || same_file(other, file);
    };
    std::error_code error;
    if (std::ranges::any_of(seen, taken) && !std::filesystem::is_character_file(file, error)) {
      throw UsageError("two outputs go to " + quote(file.string()));
    }
    seen.push_back(file);
  }
  for (const std::string& name : targets.wanted) {
    const std::size_t slot = as_usage([&] { return operation.slot(name); });
    if (!is_written(operation.operands[slot].role)) {
      throw UsageError("--want: '" + name + "' is an input of " + operation.name);
    }
  }
  if (!targets.any() && !arguments.explain) {
    throw UsageError(
        "nothing to write: give --output NAME=FILE.npy or --outputs "
        "FILE.safetensors, or --explain to only see what would run");
  }
  return targets;
}

// Writes the outputs; returns what was written, by name.
Json write_outputs(const Context& context, const Tensors& results, const Targets& targets) {
  Json written = Json::object();
  FileTensors all;
  for (const auto& [name, tensor] : results) {
    const auto file = targets.files.find(name);
    const bool in_file = !targets.safetensors.empty() && targets.in_file.contains(name);
    if (file == targets.files.end() && !in_file) continue;
    FileTensor host = to_file(context.download_bytes(tensor), tensor.dtype(), tensor.shape());
    Json& entry = written[name];
    entry = {{"dtype", to_string(tensor.dtype())}, {"shape", tensor.shape()}};
    if (file != targets.files.end()) {
      entry["file"] = file->second.string();
      if (!has_npy_name(host.type)) {
        note(".npy has no " + std::string(to_string(host.type)) + ": " +
             quote(file->second.string()) + " is written as f32");
        write_npy(file->second, widen_to_f32(host));
      } else {
        write_npy(file->second, host);
      }
    }
    if (in_file) {
      entry["safetensors"] = targets.safetensors.string();
      all.emplace(name, std::move(host));
    }
  }
  if (!targets.safetensors.empty()) write_safetensors(targets.safetensors, all);
  return written;
}

void print_explanation(const Explanation& explanation) {
  const Execution& execution = explanation.execution;
  std::cout << execution.name << "\n  chosen by: " << tier_text(execution.choice)
            << (execution.choice.why.empty() ? "" : ": ") << printable(execution.choice.why)
            << "\n  key: " << execution.key << "\n  precision: " << to_string(execution.precision)
            << '\n';
  for (const Refused& refused : explanation.refused) {
    std::cout << "  not " << refused.variant << ": " << refused.why << '\n';
  }
}

void print_written(const Json& written) {
  for (const auto& [name, entry] : written.items()) {
    for (const char* kind : {"file", "safetensors"}) {
      if (!entry.contains(kind)) continue;
      std::cout << "  " << name << ' ' << entry["dtype"].get<std::string>()
                << dump(entry["shape"], -1) << " -> " << printable(entry[kind].get<std::string>())
                << '\n';
    }
  }
}

int run_operation(const RunArguments& arguments) {
  if (arguments.operation.empty()) {
    throw UsageError("name an operation; 'tessera run --list' shows them");
  }
  const Operation& operation = *target_operations(arguments.operation).front();
  const Options options = parse_options(operation, arguments.options);
  const Targets targets = parse_targets(operation, arguments);
  refuse_inputs_as_outputs(operation, arguments);
  const Config config = as_usage([&] { return Config::parse(arguments.config); });
  if (!arguments.variant.empty()) find_variant(operation, arguments.variant);

  Inputs files = read_inputs(operation, arguments);
  const std::optional<DType> dtype = asked_dtype(operation, arguments.dtype);
  std::vector<std::string> converted;
  const std::map<std::size_t, HostInput> inputs =
      convert_inputs(operation, std::move(files), dtype, converted);
  if (!converted.empty()) note("converted: " + join(converted));

  std::vector<std::string> selectors;
  if (!arguments.device.empty()) selectors.push_back(arguments.device);
  const Context context = open_device(target_devices(selectors).front(), arguments.precision);
  Executor executor(context);
  if (!arguments.variant.empty()) executor = executor.with_variant(arguments.variant);
  if (!arguments.config.empty()) executor = executor.with_config(config);

  Tensors tensors;
  for (const auto& [slot, input] : inputs) {
    tensors.emplace(operation.operands[slot].name,
                    context.upload_bytes(input.bytes, input.dtype, input.shape));
  }
  Json json = Json::object();
  json["converted"] = converted;
  if (arguments.explain) {
    const Explanation explanation =
        executor.explain(operation.name, tensors, options, targets.wanted);
    json.update(execution_json(explanation.execution));
    json["refused"] = Json::array();
    for (const Refused& refused : explanation.refused) {
      json["refused"].push_back({{"variant", refused.variant}, {"why", refused.why}});
    }
    if (!arguments.json) print_explanation(explanation);
  }
  if (targets.any()) {
    const Tensors results = executor.run(operation.name, tensors, options, targets.wanted);
    const Execution execution = context.last_execution();
    const Json written = write_outputs(context, results, targets);
    json.update(execution_json(execution));
    json["outputs"] = written;
    if (!arguments.json) {
      if (!arguments.explain) {
        std::cout << execution.name << ", chosen by " << tier_text(execution.choice) << '\n';
      }
      print_written(written);
    }
  }
  if (arguments.json) std::cout << dump(json) << '\n';
  return 0;
}

int run(const RunArguments& arguments) {
  if (!arguments.list) {
    if (arguments.markdown) throw UsageError("--markdown goes with --list");
    return run_operation(arguments);
  }
  if (!arguments.operation.empty()) throw UsageError("--list takes no operation");
  if (arguments.markdown && arguments.json) throw UsageError("--json or --markdown, not both");
  std::cout << (arguments.json       ? catalogue_json()
                : arguments.markdown ? catalogue_markdown()
                                     : catalogue_text());
  return 0;
}

}  // namespace

Command add_run(App& tool) {
  App* app = tool.add_subcommand("run", "Run an operation on tensors from files.");
  const auto arguments = std::make_shared<RunArguments>();
  RunArguments& a = *arguments;
  app->add_option("operation", a.operation, "Name of an operation, see --list");
  app->add_option("--input", a.inputs, "Operands, one .npy file each")->type_name("NAME=FILE.npy");
  app->add_option("--inputs", a.input_files, "Operands, by name, from a safetensors file")
      ->type_name("FILE.safetensors")
      ->allow_extra_args(false);
  app->add_option(
         "--output", a.outputs,
         "Where an output, or an operand that is changed in place, goes; asks for it if it is\n"
         "optional")
      ->type_name("NAME=FILE.npy");
  app->add_option("--outputs", a.output_file,
                  "Every required output, operands that are changed in place, and those of --want")
      ->type_name("FILE.safetensors");
  app->add_option("--want", a.wanted, "Optional outputs to write with --outputs")
      ->type_name("NAME");
  app->add_option("--set", a.options, "Options of the operation")->type_name("OPTION=VALUE");
  app->add_option("--dtype", a.dtype,
                  "Convert floating operands to f32, f16 or bf16 (default: none)");
  app->add_option("--device", a.device, "Index, platform, kind, name or UUID (default: the best)");
  app->add_option("--variant", a.variant, "This variant or an error");
  app->add_option("--config", a.config, "This configuration or an error")->type_name("KEY=VALUE,…");
  add_precision_option(*app, a.precision);
  app->add_flag("--explain", a.explain, "What is chosen, by which tier, and why not the others");
  app->add_flag("--list", a.list, "Every operation: operands, shapes, options, variants");
  app->add_flag("--json", a.json, "Print JSON");
  app->add_flag("--markdown", a.markdown, "With --list: operations × platforms as a table");
  app->footer(
      "Operands keep the dtypes of their files. Converted are: floating operands to --dtype where\n"
      "they may have it; f64 to f32; floating values and integers that an operand can't have;\n"
      "integers and booleans, with a check of their range, to the operand's own integer type.\n"
      "All but the last is said on stderr. .npy can't hold bf16 and 8-bit floats: such an output\n"
      "is written as f32. Packed i4 and u4 are i8 and u8 in files.\n\n"
      "Examples:\n"
      "  tessera run flash_attention --input query=q.npy key=k.npy value=v.npy \\\n"
      "      --output output=o.npy\n"
      "  tessera run flash_attention --inputs qkv.safetensors --outputs out.safetensors \\\n"
      "      --want log_sum_exp --set causal=true softmax_scale=0.125 \\\n"
      "      --dtype bf16 --device vulkan\n"
      "  tessera run flash_attention --inputs qkv.safetensors --explain\n"
      "  tessera run --list");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace tessera::tool
