#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what compilers estimate of every cut of a call, beside which tests hold the cut to begin with.

    figures.py OUT FOLDER...    FOLDERs: what `vendors.py check PROGRAM TARGET... --level 2 --dtype f16 --operation OPERATION
                                --case CASE --variant VARIANT --save FOLDER` kept; OUT: tests/selection/estimated_cycles.json
Cycles are of all waves of a work-group, for the part of the call that one turn of its loop does: a product of one element by
one term, a score, a row. So they compare cuts of one kernel on one GPU, and nothing else. Mesa's drivers estimate them; LLVM,
ocloc and ptxas do not. Of attention's tiles they count a loop over slices once, however long it is, so cuts of several
slices are not compared with one another (kernel/ranking.hpp ranks them), but with the matrix kernel of NVK, whose cycles
are fewer even so.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
NOT_CHOSEN = ('DTYPE', 'POLICY', 'SUBGROUP', 'HEAD_DIM', 'VALUE_DIM', 'ALIGNED', 'CAPPED', 'STORAGE16', 'A_TYPE', 'B_TYPE',
              'BLOCKS', 'FEATURES', 'CENTERED', 'WHOLE', 'REGISTERS', 'CODES', 'CODE_TYPE', 'WG_Y', 'WG_Z')


def work_of(kernel, defines, lanes):
    """What a turn of a work-group's loop does, by kernel; nothing where it is not one of these."""
    at = {'WG_Y': 1, **defines}
    if kernel == 'tile.product':
        return at['ROWS'] * at['LANES_M'] * at['COLUMNS'] * (at['WG_X'] // at['LANES_M']) * at['BLOCK_K']
    if kernel == 'tile_subgroup.plain':
        return at['BLOCK_Q'] * at['BLOCK_K']
    if kernel == 'cooperative.plain':
        return at['ROWS'] * (at['WG_X'] // lanes) * at['BLOCK_K']
    if kernel in ('rows.normalise', 'rows.gradients'):
        return at['WG_Y'] if at['WHOLE'] else 0  # else a row is a loop of its own
    return 0


def row_of(line):
    operation, kernel = line['name'].split('.', 1)
    lanes = line.get('subgroup', 0)
    work = work_of(kernel, line['defines'], lanes) if line['case'].startswith(operation + ' ') and lanes else 0
    if not work or 'cycles' not in line:
        return None
    defines = {name: value for name, value in line['defines'].items() if name not in NOT_CHOSEN}
    config = ','.join(f'{name}={value}' for name, value in sorted(defines.items()))
    waves = -(-line['defines']['WG_X'] * line['defines'].get('WG_Y', 1) // lanes)
    call = (operation, line['case'].split()[1].split('/')[0])
    return call, (kernel.split('.')[0], config), {'spills': line['spills'], 'scratch': line['scratch'],
                                                  'cycles': float(f"{line['cycles'] * waves / work:.4g}")}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    targets = {target['name']: target for target in json.loads((HERE / 'targets.json').read_text(encoding='utf-8'))}
    sets = {}
    for path in sorted(path for folder in sys.argv[2:] for path in pathlib.Path(folder).glob('*.json')):
        profile = targets[path.stem].get('profile', path.stem + '_vulkan')
        for text in path.read_text(encoding='utf-8').splitlines():
            line = json.loads(text)
            row = row_of(line) if 'defines' in line and 'error' not in line else None
            if row:
                cuts = sets.setdefault((profile,) + row[0], {}).setdefault(row[1][0], {})
                # Programs that differ in more than the cut: the first pass of a call speaks for it.
                cuts.setdefault(row[1][1], row[2])
    rows = [{'profile': key[0], 'operation': key[1], 'case': key[2], 'variants': cuts} for key, cuts in sorted(sets.items())
            if sum(map(len, cuts.values())) > 1]
    text = ',\n'.join(json.dumps(row, sort_keys=True).replace('"variants": ', '\n  "variants": ').replace('}, "', '},\n    "')
                      for row in rows)
    pathlib.Path(sys.argv[1]).write_text('[\n' + text + '\n]\n', encoding='utf-8')


if __name__ == '__main__':
    main()
