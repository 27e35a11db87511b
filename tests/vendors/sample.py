# SPDX-License-Identifier: Apache-2.0
"""Which programs of many tell what a compiler makes of all of them.

Programs of one kernel that differ only in how many items share the work, or in a length that is rounded up to the same
width, have the same loops and the same registers. One of them is taken: the one with the largest work-group, since it
leaves an item the fewest registers, and of those the one with the largest numbers. Of how elements are stored and which
way a matrix lies, every value is taken once for each kernel, not once for each tile. Tiles, stages, policies and
everything else that decides what an item holds are told apart, so a larger tile anywhere is a program of its own.
"""

# Items and groups; nothing that an item holds depends on them.
EXTENTS = ('WG_X', 'WG_Y', 'WG_Z', 'LANES', 'SPLITS')
WIDTHS = ('HEAD_DIM', 'VALUE_DIM')
NARROWEST = 64
# How elements come and go around the same loops.
STORAGE = ('A_TYPE', 'B_TYPE', 'INPUT_TYPE', 'FORMAT', 'B_ORDER', 'A_BY_TERMS', 'B_BY_TERMS', 'CENTERED', 'RAGGED')


def width_of(dim):
    width = NARROWEST
    while width < dim:
        width *= 2
    return width


def kind_of(line):
    """Equal for programs of which one speaks for all."""
    kind = [line['kernel']]
    for name, value in sorted(line['defines'].items()):
        if name in WIDTHS:
            value = width_of(value)
        elif name == 'FEATURES':  # of a row: known to the compiler, or 0
            value = min(value, 1)
        # With matrix units, LANES decides what an item holds of a matrix.
        if name in STORAGE or (name in EXTENTS and not (name == 'LANES' and 'MATRIX_M' in line['defines'])):
            continue
        kind.append((name, value))
    return tuple(kind)


def stored_as(line):
    return {(line['kernel'], name, line['defines'][name]) for name in STORAGE if name in line['defines']}


def strain_of(line):
    defines = line['defines']
    items = defines.get('WG_X', 1) * defines.get('WG_Y', 1) * defines.get('WG_Z', 1)
    return items, sum(defines.values())


def sample_of(lines):
    """The numbers of those to compile, of what `tessera_vendors --list` printed."""
    lines = sorted(lines, key=strain_of, reverse=True)
    taken = {}
    for line in lines:
        taken.setdefault(kind_of(line), line)
    numbers = {line['number'] for line in taken.values()}
    known = set().union(*map(stored_as, taken.values()))
    for line in lines:
        if stored_as(line) - known:
            known |= stored_as(line)
            numbers.add(line['number'])
    return sorted(numbers)
