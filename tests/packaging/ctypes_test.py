#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads a shared libtessera and runs an operation by the generic call: ctypes_test.py LIBTESSERA.

The structs are written out by hand, as another language's bindings would: a change of their layout fails here.
"""
import ctypes
import sys

INVALID_ARGUMENT, F32 = 1, 0
size_t, text, pointer = ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p


class ContextOptions(ctypes.Structure):
    _fields_ = [("struct_size", size_t), ("device", text), ("cache_directory", text),
                ("ignore_environment", ctypes.c_int32)]


class Spec(ctypes.Structure):
    _fields_ = [("struct_size", size_t), ("dtype", ctypes.c_int), ("rank", ctypes.c_uint32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_int64)]


class Value(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("count", ctypes.c_uint32), ("bits", ctypes.c_int64)]


class Option(ctypes.Structure):
    _fields_ = [("name", text), ("value", Value)]


class Operand(ctypes.Structure):
    _fields_ = [("name", text), ("tensor", pointer), ("spec", ctypes.POINTER(Spec))]


class Output(ctypes.Structure):
    _fields_ = [("name", text), ("tensor", ctypes.POINTER(pointer)), ("spec", ctypes.POINTER(Spec))]


class Call(ctypes.Structure):
    _fields_ = [("struct_size", size_t), ("operation", text), ("operands", ctypes.POINTER(Operand)),
                ("operand_count", size_t), ("options", ctypes.POINTER(Option)), ("option_count", size_t),
                ("outputs", ctypes.POINTER(Output)), ("output_count", size_t), ("variant", text), ("stream", pointer)]


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.tessera_last_error.restype = text
    library.tessera_version.restype = text
    library.tessera_device_summary.restype = text
    library.tessera_device_summary.argtypes = [pointer]
    for destroy in (library.tessera_tensor_destroy, library.tessera_context_destroy):
        destroy.argtypes, destroy.restype = [pointer], None

    def check(status, expected=0):
        assert status == expected, (status, library.tessera_last_error())

    options = ContextOptions(ctypes.sizeof(ContextOptions), b"host", b"", 1)
    context, tensor, output = pointer(), pointer(), pointer()
    check(library.tessera_open(ctypes.byref(options), ctypes.byref(context)))
    print(library.tessera_version().decode(), library.tessera_device_summary(context).decode())

    shape = (ctypes.c_int64 * 3)(1, 2, 3)
    spec = Spec(ctypes.sizeof(Spec), F32, 3, shape, None, 0)
    values = (ctypes.c_float * 6)(1, 2, 3, 5, 6, 7)
    check(library.tessera_upload(context, ctypes.byref(spec), values, size_t(24), ctypes.byref(tensor)))
    operand = Operand(b"input", tensor, None)
    result = Output(b"output", ctypes.pointer(output), None)
    call = Call(ctypes.sizeof(Call), b"sequence_mean", ctypes.pointer(operand), 1, None, 0, ctypes.pointer(result), 1)
    check(library.tessera_query_support(context, ctypes.byref(call)))
    check(library.tessera_run(context, ctypes.byref(call)))
    means = (ctypes.c_float * 3)()
    check(library.tessera_download(context, output, means, size_t(12)))
    assert list(means) == [3, 4, 5], list(means)

    option = Option(b"precision", Value(4, 0, ctypes.cast(ctypes.c_char_p(b"nonsense"), pointer).value))
    call.options, call.option_count = ctypes.pointer(option), 1
    check(library.tessera_run(context, ctypes.byref(call)), INVALID_ARGUMENT)
    assert b"nonsense" in library.tessera_last_error()
    check(library.tessera_run(context, None), INVALID_ARGUMENT)

    for each in (tensor, output):
        library.tessera_tensor_destroy(each)
    library.tessera_context_destroy(context)


main()
