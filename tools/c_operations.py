# SPDX-License-Identifier: Apache-2.0
"""Makes the C headers of operations from the records, for tools/update_docs.py."""
import json
import subprocess
import textwrap

VALUES = """\
/* Values of options. Options of a call that are all zeros have their defaults. */

static inline tessera_value tessera_bool(int32_t value) {
  tessera_value made = {TESSERA_BOOL, 0, {0}};
  made.as.integer = value != 0;
  return made;
}
static inline tessera_value tessera_int(int64_t value) {
  tessera_value made = {TESSERA_INT, 0, {0}};
  made.as.integer = value;
  return made;
}
static inline tessera_value tessera_float(double value) {
  tessera_value made = {TESSERA_FLOAT, 0, {0}};
  made.as.number = value;
  return made;
}
static inline tessera_value tessera_text(const char* value) {
  tessera_value made = {TESSERA_TEXT, 0, {0}};
  made.as.text = value;
  return made;
}
/* The numbers must live until the call has returned. */
static inline tessera_value tessera_ints(const int64_t* values, uint32_t count) {
  tessera_value made = {TESSERA_INTS, 0, {0}};
  made.count = count;
  made.as.integers = values;
  return made;
}
"""

ALL = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* A typed function for each operation. Generated from the records by tools/update_docs.py, as are the
   headers of tessera/c, one for each operation, which may be included alone.

   A struct that is all zeros is a call without operands and with the defaults of all options: set what
   the call has. Operands that are not optional must be set. An output is a place for a handle: null
   leaves it out, a null handle becomes a new tensor, any other is the tensor to write to. Options take
   tessera_bool(), tessera_int(), tessera_float(), tessera_text() and tessera_ints(). What they mean,
   shapes and errors are in tessera/operations/ and in `tessera run --list`. */
#ifndef TESSERA_TESSERA_OPERATIONS_H
#define TESSERA_TESSERA_OPERATIONS_H

"""


def header(name, body, includes):
    """A header of tessera/c."""
    guard = f"TESSERA_C_{name.upper()}_H"
    return ("/* SPDX-License-Identifier: Apache-2.0 */\n"
            "/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */\n"
            f"#ifndef {guard}\n#define {guard}\n\n"
            + "".join(f'#include "tessera/{include}"\n' for include in includes) +
            '\n#ifdef __cplusplus\nextern "C" {\n#endif\n\n' + body +
            "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n")


def comment(text, indent=""):
    """A block comment in lines of 100 characters."""
    text = text.replace("*/", "* /")
    lines = textwrap.wrap(text, 94 - len(indent), break_long_words=False)
    return f"{indent}/* " + f"\n{indent}   ".join(lines) + " */\n"


def documented(operand):
    role = "" if operand["role"] == "input" else operand["role"] + ", "
    optional = "optional, " if operand["optional"] else ""
    return f"{optional}{role}{operand['shape']}" + (f": {operand['doc']}" if operand["doc"] else "")


def table(kind, name, rows):
    """The definition of an array in a function."""
    if not rows:
        return ""
    text = f"  const {kind} {name}[] = {{\n"
    return text + "".join(f"      {{{row}}},\n" for row in rows) + "  };\n"


def operation(record):
    name = record["name"]
    read = [o for o in record["operands"] if o["role"] != "output"]
    written = [o for o in record["operands"] if o["role"] == "output"]
    text = comment(f"{record['summary']}. {record['formula']}")
    text += f"typedef struct tessera_{name}_call {{\n"
    for operand in read:
        text += comment(documented(operand), "  ") + f"  const tessera_tensor* {operand['name']};\n"
    for operand in written:
        text += comment(documented(operand), "  ") + f"  tessera_tensor** {operand['name']};\n"
    for option in record["options"]:
        default = option["default"]
        text += comment(f"{option['type']}, default {default if default is not None else 'none'}: {option['doc']}", "  ")
        text += f"  tessera_value {option['name']};\n"
    text += f"}} tessera_{name}_call;\n\n"
    text += comment("`stream` null: the context's own.")
    text += (f"static inline tessera_status tessera_{name}(const tessera_context* context,\n"
             f"    const tessera_stream* stream, const tessera_{name}_call* call) {{\n")
    text += table("tessera_operand", "operands", [f"\"{o['name']}\", call->{o['name']}, 0" for o in read])
    text += table("tessera_output", "outputs", [f"\"{o['name']}\", call->{o['name']}, 0" for o in written])
    text += table("tessera_option", "options", [f"\"{o['name']}\", call->{o['name']}" for o in record["options"]])
    count = lambda rows, array: f"{array}, {len(rows)}" if rows else "0, 0"
    text += ("  const tessera_call generic = {sizeof(tessera_call),\n"
             f"      \"{name}\",\n"
             f"      {count(read, 'operands')},\n"
             f"      {count(record['options'], 'options')},\n"
             f"      {count(written, 'outputs')},\n"
             "      0, stream};\n"
             "  return tessera_run(context, &generic);\n"
             "}\n")
    return text


def headers(tool):
    """The text of each generated header, by its path below include/tessera."""
    listed = subprocess.run([tool, "run", "--list", "--json"], check=True, capture_output=True, text=True).stdout
    records = sorted(json.loads(listed)["operations"], key=lambda record: record["name"])
    made = {f"c/{record['name']}.h": header(record["name"], operation(record), ["c/values.h"]) for record in records}
    includes = "".join(f'#include "tessera/{path}"\n' for path in made)
    made["c/values.h"] = header("values", VALUES, ["tessera.h"])
    made["tessera_operations.h"] = ALL + includes + "\n#endif\n"
    return made
