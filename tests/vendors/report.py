#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/vendors.md from what `vendors.py check --save FOLDER` kept: `report.py FOLDER [OTHER...] > docs/vendors.md`.

What is chosen is that of FOLDER; of the others, where other storage types were asked for, only what they come to."""
import json
import pathlib
import sys

import rules

HERE = pathlib.Path(__file__).resolve().parent
SHOWN = ('plain', 'policies', 'keys', 'queries')
DIMS = (64, 128, 256)

HEAD = """# GPUs by their compilers

Tessera has been measured on NVIDIA GPUs and on CPUs. No GPU of AMD or Intel was at hand, but their compilers were: Mesa's
drivers compile without a GPU, clang compiles OpenCL C for AMD and NVIDIA, ocloc for Intel. This page is what they say of
the programs that Tessera builds for its conformance cases and benchmarks, in the configurations that it chooses untuned.

**Nothing on this page was run on the GPU that it is about, but for sm_90.** A compiler tells what fits registers, what spills to memory
and how many waves a core holds; it tells neither that results are right there nor how fast they come. On such a GPU
`tessera check` finds out the first, and `tessera tune` the second, whose results then go before these defaults.

Written by `tests/vendors/report.py` from what `tests/vendors/vendors.py check --save` kept; `tools/vendors.sh get` fetches
the compilers. Label `vendors` of ctest checks one GPU of each vendor and platform at every run; what it compiled of OpenCL C it
remembers there, so that a program whose text, target and compiler are the same is not compiled again. Kernels may have
changed since this page was written: what holds of them today is what the label says.
"""

TAIL = """## Never even compiled

**Mali, Adreno, PowerVR and Apple GPUs: no compiler of theirs was at hand.** They take the base tier (variant `tile`) with
the configurations of GPUs in general, as far as the driver's limits allow. Windows drivers of AMD and Intel, and Apple's
and ARM's OpenCL, have compiled nothing either. ROCm's and Intel's profiles for OpenCL are written down from their
documentation, not recorded.

## What the choices rest on

| GPUs | what a work-item has | so Tessera takes |
| --- | --- | --- |
| Intel, Xe-LP to Xe2 | 128 registers of the native width: a sub-group of 32 lanes leaves 32 or 64 to a lane | sub-groups of the smallest size (8; 16 on Xe2); 2 rows and short slices; matrices where 80 registers hold them |
| Intel through OpenCL, Xe-HP and later | 128 registers for each of all threads, or 256 for half as many | 128; `tessera tune` tries each configuration with 256 as well (`LARGE_GRF=1`) |
| AMD, GCN | 256 registers for one wave per SIMD, 128 for two; 64 KiB of local memory for four SIMDs | 4 x 4 scores to an item, 256 items that share a tile, at most 16 KiB for 128 items |
| AMD, RDNA | 192 registers for four waves of 64 lanes (RDNA 3), 128 before | the same; matrices within 192, counting those of RDNA 3 four times |
| AMD through OpenCL | LLVM unrolls the loops over a slice whole and loads all of it first | those loops are marked not to be unrolled |
| NVIDIA, Hopper (sm_90) | 255 registers | what was measured on an H200, whose driver compiles with other registers than clang and ptxas on this page |
| NVIDIA, others | 255 registers, which a Hopper's cuts exceed by 1 to 32 | matrix instructions with at most 160 registers for matrices (144 on Blackwell), 80 fewer where policies take the others |

256 registers are a wish that Intel's OpenCL compiler takes (`-cl-intel-256-GRF-per-thread`) and that Vulkan has no word for:
there the driver decides by itself, and `LARGE_GRF=1` is refused, as it is on Xe-LP and on all other GPUs.

Where a driver does not tell the number of compute units, 32 are assumed of a discrete GPU and 8 of an integrated one, so
that the keys of few rows are split.
"""


def load(folder, target):
    path = folder / (target['name'] + '.json')
    if not path.exists():
        return None
    return [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines()]


def one_tree(found):
    """All rows are of the same kernels, or the page would compare what does not belong together."""
    trees = {}
    for target, lines in found:
        for line in lines or []:
            if 'device' in line:
                trees.setdefault((target['platform'], line.get('kernels', '?')), []).append(target['name'])
    for platform in ('opencl', 'vulkan'):
        mixed = [names for (of, _), names in trees.items() if of == platform]
        if len(mixed) > 1:
            sys.exit('kept from different trees, compile them again: ' + '; '.join(', '.join(names) for names in mixed))


def families_of(lines):
    """The families whose programs these are, in the order of the library's list, each once."""
    return list(dict.fromkeys(line['family'] for line in programs(lines)))


OF_CALLS_ALONE = {'fused_mlp'}  # most of its programs are another family's


def what_of(lines, everything):
    """Which part of the programs a target was asked for; `everything` has the families of all targets."""
    dtypes = {line['case'].rsplit('/', 1)[1] for line in programs(lines) if '/' in line.get('case', '')}
    dims = {line['defines'].get('HEAD_DIM') for line in programs(lines)} - {None, 0}
    of_dims = ' at dims ' + ' and '.join(map(str, sorted(dims))) if len(dims) <= 2 else ''
    asked = families_of(lines)
    of_families = '' if everything - set(asked) <= OF_CALLS_ALONE else ': ' + ', '.join(map(title, asked))
    return ', '.join(sorted(dtypes)) + of_dims + of_families


def title(family):
    return family.replace('_', ' ')


def programs(lines):
    return [line for line in lines if 'defines' in line and 'error' not in line]


def name_of(target):
    return target['name'] if target.get('measured') else f"**{target['name']}**"


def overview(target, lines, everything):
    built = programs(lines)
    device = next((line['device'] for line in lines if 'device' in line), {})
    errors = sum('error' in line for line in lines)
    waves = [rules.waves_of(target, line) for line in built if rules.dim_of(line) in (64, 128) and 'waves' in line]
    spills = [line for line in built if line.get('spills') and rules.dim_of(line) <= 256]
    scratch = [line for line in built if line.get('scratch') and rules.dim_of(line) <= 256]
    most = max((line['spills'] for line in spills), default=0)
    return (f"| {name_of(target)} | {target['gpu']} | {target['platform']} | {device.get('driver', '')} | {what_of(lines, everything)} | {len(built)} | "
            f"{errors} | {len(spills)}{f' (most {most})' if most else ''} | "
            f"{len(scratch)}{' (most ' + str(max(line['scratch'] for line in scratch)) + ' B)' if scratch else ''} | "
            f"{f'{min(waves):g}' if waves else '–'} | {max(line['seconds'] for line in built):.1f} |")


def by_choice(found):
    """A sentence of what ptxas spills although an item could have the registers."""
    parts = []
    for target, lines in found:
        chosen = [line['by_choice']['spills'] for line in programs(lines or [])
                  if line.get('by_choice', {}).get('spills', 0) > line['spills']]
        if chosen:
            parts.append(f"{target['name']} {len(chosen)} (most {max(chosen)})")
    if not parts:
        return ''
    return ('\nSpills are of what an item can\'t have: NVIDIA\'s count with one work-group to a multiprocessor. By its own count of '
            'cycles\nptxas spills more, so that one group more shares it; programs that it does that to: ' + ', '.join(parts) + '.')


def short_config(defines):
    skip = ('DTYPE', 'POLICY', 'SUBGROUP', 'HEAD_DIM', 'VALUE_DIM', 'ALIGNED', 'CAPPED', 'WG_Y', 'WG_Z', 'VECTOR', 'PTX',
            'KEEP_Q', 'FEATURES', 'BAND', 'REGISTERS')
    return ', '.join(f'{key} {value}' for key, value in defines.items() if value and key not in skip)


def details(target, lines):
    rows, seen = [], set()
    for dim in DIMS:
        for line in programs(lines):
            operation, variant, name = (line['name'].split('.') + [''])[:3]
            key = (dim, operation.replace('flash_', ''), variant, name)
            if name not in SHOWN or line['defines'].get('HEAD_DIM') != dim or key in seen or 'scaled' in operation:
                continue
            seen.add(key)
            waves = rules.waves_of(target, line)
            rows.append(f"| {dim} | {'backward' if 'backward' in operation else 'forward'} | {variant}.{name} | "
                        f"{short_config(line['defines'])} | {line.get('subgroup', '–')} | "
                        f"{line.get('registers', line.get('live', '–'))} | {line.get('spills', 0)} | "
                        f"{line.get('scratch', 0)} | {line.get('local', 0)} | {f'{waves:g}' if waves else '–'} |")
    return rows


def families(target, lines):
    """A row for each family beside attention: the worst of its programs."""
    rows = []
    for family in families_of(lines):
        of_it = [line for line in programs(lines) if line['family'] == family]
        if family == 'attention':
            continue
        waves = [rules.waves_of(target, line) for line in of_it if 'waves' in line]
        most = {key: max(line.get(key, 0) for line in of_it) for key in ('spills', 'scratch', 'local')}
        registers = max(line.get('registers', line.get('live', 0)) for line in of_it)
        rows.append(f"| {title(family)} | {len(of_it)} | {registers} | {most['spills']} | {most['scratch']} | {most['local']} | "
                    f"{f'{min(waves):g}' if waves else '–'} | {max(line['seconds'] for line in of_it):.1f} |")
    return rows


def main():
    folders = [pathlib.Path(name) for name in sys.argv[1:]]
    if not folders or not all(folder.is_dir() for folder in folders):
        sys.exit(__doc__)
    folder, *others = folders
    targets = json.loads((HERE / 'targets.json').read_text(encoding='utf-8'))
    found = [(target, load(folder, target)) for target in targets]
    everything = {family for _, lines in found for family in families_of(lines or [])}
    print(HEAD)
    beside = [(target, load(other, target)) for target in targets for other in others]
    one_tree(found + beside)
    print('## What compiles\n\nPrograms of the default configurations, all of one tree, those that tell what all come to '
          '(`tests/vendors/sample.py`).\nSpills and scratch memory are of dims up to 256; waves of 64 lanes per SIMD, the fewest '
          'at dims 64 and 128 (warps per\nmultiprocessor on NVIDIA); the longest build in seconds of CPU time, on a machine '
          'that may have had other work. Targets in bold\nhave never been run.\n')
    print('| target | GPU | through | compiled with | of | programs | errors | spill | with scratch | waves | longest |')
    print('| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |')
    for target, lines in found:
        for of_target in [lines] + [more for other, more in beside if other is target]:
            if of_target:
                print(overview(target, of_target, everything))
    if chosen := by_choice(found):
        print(chosen)
    missing = [target['name'] for target, lines in found if not lines]
    if missing:
        print(f"\nNot compiled for this page: {', '.join(missing)}.")
    known = rules.allowances()
    print('\n## What may spill\n\nRecorded with ' + ', '.join(f'{k} {v}' for k, v in known['compilers'].items()) + '.\n')
    print('| targets | kernels | dims | spills | scratch bytes | fewest waves | why |\n'
          '| --- | --- | --- | --- | --- | --- | --- |')
    for row in known['allowed']:
        print(f"| {', '.join(row['targets'])} | {', '.join(row['kernels'])} | {row['from_dim']} to {row['to_dim']} | "
              f"{row.get('spills', 0)} | {row.get('scratch', 0)} | {row.get('waves', '–')} | {row['reason']} |")
    print('\n## What is chosen\n\nThe first program of each kernel and dim. Registers are those that a lane is given; through '
          "Intel's Vulkan driver what it calls\n\"Max live registers\", before it allocates them.")
    for target, lines in found:
        rows = details(target, lines) if lines else []
        if not rows:
            continue
        print(f"\n### {target['name']}: {target['gpu']}, {target['platform']} (**never run**)\n"
              if target['family'] != 'nvidia' else f"\n### {target['name']}: {target['gpu']}, {target['platform']}\n")
        print('| dim | pass | kernel | configuration | sub-group | registers | spills | scratch | local | waves |\n'
              '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |')
        print('\n'.join(rows))
        if not families(target, lines):
            continue
        print('\n| family | programs | most registers | spills | scratch | local | fewest waves | longest build |\n'
              '| --- | --- | --- | --- | --- | --- | --- | --- |')
        print('\n'.join(families(target, lines)))
    print('\n' + TAIL, end='')


if __name__ == '__main__':
    main()
