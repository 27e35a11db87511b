# SPDX-License-Identifier: Apache-2.0
"""Which programs of many tell what a compiler makes of all of them.

Programs of one kernel that differ only in how many items share the work, or in a length that is rounded up to the same
width, have the same loops and the same registers. One of them is taken: the one with the largest work-group, since it
leaves an item the fewest registers, and of those the one with the most operands, then the largest numbers. Of programs
that differ in what an item holds in no way but how much, the ones that hold most are taken. Of how elements are stored,
of which way a matrix lies and of FEATURES, every value is taken once for each kernel, by the smallest programs that have it. Tiles,
stages, policies and everything else that decides what an item holds are told apart, so a larger tile anywhere is a
program of its own.
"""

# Items and groups; nothing that an item holds depends on them.
EXTENTS = ('WG_X', 'WG_Y', 'WG_Z', 'LANES', 'LANES_K', 'SPLITS')
# How much an item holds: with all else alike, less of it takes fewer registers.
HELD = ('ROWS', 'COLUMNS', 'SQUARES', 'VECTORS', 'TOKENS')
WIDTHS = ('HEAD_DIM', 'VALUE_DIM')
NARROWEST = 64
# How elements come and go around the same loops, and which rows a mean is of.
STORAGE = ('A_TYPE', 'B_TYPE', 'INPUT_TYPE', 'FORMAT', 'B_ORDER', 'A_BY_TERMS', 'B_BY_TERMS', 'CENTERED', 'RAGGED', 'POOL')


def width_of(dim):
    width = NARROWEST
    while width < dim:
        width *= 2
    return width


def kind_of(line):
    """Equal for programs of which one speaks for all."""
    kind = [('kernel', line['kernel'])]
    for name, value in sorted(line['defines'].items()):
        if name in WIDTHS:
            value = width_of(value)
        elif name == 'FEATURES':  # bits, for operands that a call has: the most of them take the most registers
            value = min(value, 1)
        # With matrix units, LANES decides what an item holds of a matrix.
        if name in STORAGE or (name in EXTENTS and not (name == 'LANES' and 'MATRIX_M' in line['defines'])):
            continue
        kind.append((name, value))
    return tuple(kind)


def bits_of(number):
    return [bit for bit in range(number.bit_length()) if number >> bit & 1]


def taken_once(line):
    """What each kernel is compiled with at least once. A feature may cost what the program of most features lacks."""
    features = {(line['kernel'], 'FEATURES', bit) for bit in bits_of(line['defines'].get('FEATURES', 0))}
    return features | {(line['kernel'], name, line['defines'][name]) for name in STORAGE if name in line['defines']}


def strain_of(line):
    defines = line['defines']
    items = defines.get('WG_X', 1) * defines.get('WG_Y', 1) * defines.get('WG_Z', 1)
    numbers = sum(value for name, value in defines.items() if name != 'FEATURES')
    return items, len(bits_of(defines.get('FEATURES', 0))), numbers


def held_by(line):
    return tuple(line['defines'].get(name, 0) for name in HELD)


def without_smaller(lines):
    """Of lines that differ in HELD only, those of which no other has as much of everything."""
    alike = {}
    for line in lines:
        alike.setdefault(tuple(pair for pair in kind_of(line) if pair[0] not in HELD), []).append(line)
    for group in alike.values():
        for line in group:
            mine = held_by(line)
            if not any(other is not line and all(a >= b for a, b in zip(held_by(other), mine)) for other in group):
                yield line


def sample_of(lines, variants=None):
    """The numbers of those to compile, of what `tessera_vendors --list` printed; of these variants only, where they are named."""
    lines = [line for line in lines if variants is None or line['name'].split('.')[1] in variants]
    lines = sorted(lines, key=strain_of, reverse=True)
    kinds = {}
    for line in lines:
        kinds.setdefault(kind_of(line), line)
    taken = list(without_smaller(kinds.values()))
    numbers = {line['number'] for line in taken}
    known = set().union(*map(taken_once, taken))
    lines.reverse()
    while lines:
        line = max(lines, key=lambda line: len(taken_once(line) - known))  # the first of equal ones
        if not taken_once(line) - known:
            break
        known |= taken_once(line)
        numbers.add(line['number'])
    return sorted(numbers)
