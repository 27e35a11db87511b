# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=module.spv -DOUTPUT=module.inc -P embed_words.cmake
# Writes a SPIR-V file, which is little-endian, as comma-separated words.
file(READ "${INPUT}" hex HEX)
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${hex}")
string(REGEX REPLACE "(0x[0-9a-f]+,0x[0-9a-f]+,0x[0-9a-f]+,0x[0-9a-f]+,0x[0-9a-f]+,0x[0-9a-f]+,0x[0-9a-f]+,0x[0-9a-f]+,)"
                     "\\1\n" words "${words}")
file(WRITE "${OUTPUT}" "${words}\n")
