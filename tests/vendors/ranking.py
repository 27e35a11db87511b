#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what compilers say of every cut of the tile kernels, for the choice of the one to begin with.

    ranking.py FOLDER OUT      FOLDER: what `vendors.py check PROGRAM TARGET --level 2 --variant tile --save FOLDER` kept
                               (tile_subgroup of flash_attention through Vulkan); OUT: src/operations/attention_core/tile
A row is the worst of all programs of a cut: plain, with policies, of the forward pass or of a kernel of the backward pass.
Rows of targets that FOLDER does not have stay.
"""
import json
import pathlib
import sys

import rules

HERE = pathlib.Path(__file__).resolve().parent
DIMS = (64, 128, 256)
FIELDS = ('WG_X', 'BLOCK_Q', 'BLOCK_K', 'ITEM_ROWS', 'SLICE_D')
SLICES = {'forward': ('SLICE_K', 'PREFETCH'), 'keys': ('SLICE_STEP', 'PREFETCH'), 'queries': ('SLICE_STEP', 'PREFETCH')}


def kernel_of(name):
    operation, variant, kernel = (name.split('.') + ['', ''])[:3]
    if variant in ('tile', 'tile_subgroup') and kernel in ('plain', 'policies'):
        return 'forward'
    if variant == 'tile' and kernel.split('_')[0] in ('keys', 'queries') and 'backward' in operation:
        return kernel.split('_')[0]
    return None


def rows_of(target, lines):
    rows = {}
    for line in lines:
        kernel = kernel_of(line.get('name', '')) if 'defines' in line and 'error' not in line else None
        defines = line.get('defines', {})
        dim = defines.get('HEAD_DIM')
        if kernel is None or dim not in DIMS or defines.get('VALUE_DIM') != dim or defines.get('KEEP_Q'):
            continue
        key = (kernel, dim) + tuple(defines.get(field, 0) for field in FIELDS + SLICES[kernel])
        waves = rules.waves_of(target, line) if target['family'] in ('gcn', 'rdna') else 0
        allowed = rules.allowed_for(target, line, rules.allowances()['allowed'])
        found = [line.get('registers', line.get('live', 0))]
        found += [0 if line.get(field, 0) <= allowed[field] else line[field] for field in ('spills', 'scratch')]
        found.append(int(waves or 0))
        if key in rows:
            found = [max(a, b) for a, b in zip(rows[key][:3], found)] + [min(rows[key][3], found[3])]
        rows[key] = found
    return rows


def rows_kept(path, renewed):
    """Rows, and the comments that name compilers, of targets that are not compiled now."""
    rows, versions = [], {}
    for line in path.read_text(encoding='utf-8').splitlines() if path.exists() else []:
        if line.startswith('{"') and line.split('"')[1] not in renewed:
            rows.append(line)
        elif line.startswith('// ') and line.endswith('.') and ': ' in line and 'SIMD' not in line:
            names, version = line[3:-1].split(': ', 1)
            names = [name for name in names.split(', ') if name not in renewed]
            if names:
                versions[version] = names
    return rows, versions


def main():
    if len(sys.argv) != 3 or not pathlib.Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    tables, versions = {kernel: [] for kernel in SLICES}, {}
    for target in json.loads((HERE / 'targets.json').read_text(encoding='utf-8')):
        path = folder / (target['name'] + '.json')
        if not path.exists():
            continue
        lines = [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines() if line.startswith('{')]
        driver = next((line['device']['driver'] for line in lines if 'device' in line), 'unknown')
        versions.setdefault(driver, []).append(target['name'])
        for key, found in sorted(rows_of(target, lines).items()):
            tables[key[0]].append(f'{{"{target["name"]}", ' + ', '.join(str(x) for x in key[1:] + tuple(found)) + '},')
    renewed = {name for names in versions.values() for name in names}
    for kernel, rows in tables.items():
        path = out / f'{kernel}_compiled.def'
        before, told = rows_kept(path, renewed)
        text = ['// SPDX-License-Identifier: Apache-2.0',
                '// Written by tests/vendors/ranking.py: target; columns; ' + ', '.join(FIELDS + SLICES[kernel]) + ';',
                '// registers, spills, bytes of scratch memory beyond what is allowed, waves of 64 lanes per SIMD.']
        for driver, names in versions.items():
            told[driver] = told.get(driver, []) + names
        text += [f'// {", ".join(names)}: {driver}.' for driver, names in told.items()]
        path.write_text('\n'.join(text + before + rows) + '\n', encoding='utf-8')


main()
