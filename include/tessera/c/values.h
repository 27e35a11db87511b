/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_VALUES_H
#define TESSERA_C_VALUES_H

#include "tessera/tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
