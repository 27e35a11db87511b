# SPDX-License-Identifier: Apache-2.0
"""Tensor files for the tests of the tool, written and read by code of their own."""
import json
import math
import struct


def npy(values, shape, descr="<f4", code="f", fortran=False):
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (
        descr, fortran, "".join("%d," % n for n in shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    order = ">" if descr.startswith(">") else "<"
    data = struct.pack(order + "%d%s" % (len(values), code), *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def read_npy(path):
    """(descr, shape, values) of a file in the format that the tool writes."""
    with open(path, "rb") as file:
        content = file.read()
    assert content[:8] == b"\x93NUMPY\x01\x00", content[:8]
    length = struct.unpack("<H", content[8:10])[0]
    assert (10 + length) % 64 == 0
    header = eval(content[10:10 + length])  # our own output
    code = {"<f4": "f", "<f2": "e", "<f8": "d", "<i4": "i", "|u1": "B"}[header["descr"]]
    count = math.prod(header["shape"])
    return header["descr"], header["shape"], struct.unpack("<%d%s" % (count, code),
                                                           content[10 + length:])


def bfloat16(value):
    """The 16 bits of a float, rounded to nearest even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def from_bfloat16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def safetensors(tensors):
    """A file from {name: (dtype, shape, bytes)}."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    data = content[8 + length:]
    return {name: (entry["dtype"], entry["shape"],
                   data[entry["data_offsets"][0]:entry["data_offsets"][1]])
            for name, entry in json.loads(content[8:8 + length]).items() if name != "__metadata__"}
