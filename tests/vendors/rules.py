# SPDX-License-Identifier: Apache-2.0
"""What a program must be like. allowances.json lists what may spill, with reasons."""
import json
import pathlib

LONGEST_SECONDS = 3  # of CPU time, for one program, on the processor of yardstick.py
FEWEST_WAVES = {'gcn': 2, 'rdna': 4}  # of 64 lanes, per SIMD
WAVES_TO_DIM = 128
LOCAL_SLACK = 1024  # that a compiler may add to the library's own figure


def allowances():
    return json.loads((pathlib.Path(__file__).resolve().parent / 'allowances.json').read_text(encoding='utf-8'))


def dim_of(line):
    """Of rows that a program knows the width of; 0 where it takes all."""
    return max(line['defines'].get(name, 0) for name in ('HEAD_DIM', 'VALUE_DIM', 'KEY_DIM', 'DIM'))


def waves_of(target, line):
    """Of 64 lanes. RADV and LLVM count those of 32 on RDNA."""
    if 'waves' not in line:
        return None
    return line['waves'] / 2 if target['family'] == 'rdna' else line['waves']


def describe(line):
    defines = {key: value for key, value in line['defines'].items() if value and key not in ('WG_Y', 'WG_Z')}
    return f"{line['name']} {defines} (for {line['case']})"


def allowed_for(target, line, rows):
    """What the entries for this program allow: most spills and scratch bytes, fewest waves."""
    most = {'spills': 0, 'scratch': 0, 'waves': max(FEWEST_WAVES.values())}
    for row in rows:
        if target['name'] not in row['targets'] or not any(line['name'].endswith(name) for name in row['kernels']):
            continue
        if row['from_dim'] <= dim_of(line) <= row['to_dim']:
            for key in ('spills', 'scratch'):
                most[key] = max(most[key], row.get(key, 0))
            most['waves'] = min(most['waves'], row.get('waves', most['waves']))
    return most


def judge(target, lines):
    """Returns failures and warnings."""
    known = allowances()
    failures, warnings = [], []
    device = next((line['device'] for line in lines if 'device' in line), {})
    version = known['compilers'].get(target['compiler'], '')
    recorded = version in device.get('driver', '')
    excess = failures if recorded else warnings
    if not recorded:
        warnings.append(f"the allowances were recorded with {target['compiler']} {version}, and this is "
                        f"'{device.get('driver', 'unknown')}'; what it spills more asks for a new record")
    for line in lines:
        if 'error' in line:
            failures.append(f"{line.get('name', '')} for {line.get('case', '')} does not build: {line['error'][:600]}")
            continue
        if 'defines' not in line:
            continue
        most = allowed_for(target, line, known['allowed'])
        for key in ('spills', 'scratch'):
            if line.get(key, 0) > most[key]:
                what = 'registers spilled' if key == 'spills' else 'bytes of scratch memory'
                excess.append(f'{describe(line)}: {line[key]} {what}, {most[key]} are allowed')
        waves = waves_of(target, line)
        # Two compilers differ here: LLVM takes what registers there are for one wave.
        if target['platform'] == 'vulkan' and waves is not None and dim_of(line) <= WAVES_TO_DIM:
            if waves < min(FEWEST_WAVES.get(target['family'], 0), most['waves']):
                excess.append(f'{describe(line)}: {waves:g} waves of 64 lanes per SIMD')
        if line.get('local', 0) > max(line.get('local_bytes', 0), 0) + LOCAL_SLACK and line.get('local_bytes'):
            failures.append(f"{describe(line)}: {line['local']} bytes of local memory, and the library counts "
                            f"{line['local_bytes']}")
        # NVIDIA's OpenCL reports less than there is.
        there = target.get('local_memory', device.get('local_memory', 1 << 30))
        if line.get('local', 0) > there:
            failures.append(f"{describe(line)}: {line['local']} bytes of local memory, and the device has {there}")
        lanes = line['defines'].get('LANES') if 'MATRIX_M' in line['defines'] else None
        if line['defines'].get('SUBGROUP') == 1:
            lanes = device.get('subgroup_size')
        if lanes and line.get('subgroup') not in (None, lanes):
            failures.append(f"{describe(line)}: sub-groups of {line['subgroup']} lanes, and the library counts on {lanes}")
        if line.get('seconds', 0) > LONGEST_SECONDS:
            failures.append(f"{describe(line)}: {line['seconds']:.1f} s of CPU time, and {LONGEST_SECONDS} are allowed")
    return failures, warnings
