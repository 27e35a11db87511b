#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the library's programs for GPUs that are not here and checks what their compilers say.

    vendors.py check PROGRAM TARGET... [--save FOLDER] [--sample] [--variants A,B] [--dtype f16] [OPTION OF tessera_vendors...]
    vendors.py profiles PROGRAM TARGET...    whether tests/devices holds what the drivers say today
    vendors.py targets                       their names, those of the default run marked
PROGRAM is tessera_vendors; the targets are in targets.json, what may spill is in allowances.json. With --sample those
programs that sample.py takes, with --variants those of these variants among them. Exits with 77 where a compiler can't be had, with 1 where a check fails, and says why.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import kept
import offline
import rules
import sample
import yardstick

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOOL = ['sh', str(ROOT / 'tools' / 'vendors.sh')]
SKIPPED = 77
MOST_PRINTED = 30


def targets():
    return json.loads((HERE / 'targets.json').read_text(encoding='utf-8'))


class Skipped(Exception):
    """A compiler that can't be had."""


class Misused(Exception):
    """Words that this program does not take."""


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == SKIPPED:
        raise Skipped(done.stderr.strip())
    return done.returncode, done.stdout, done.stderr


def lines_of(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith('{')]


def of_sample(command, options, sampled):
    """The options that ask for the programs of the sample only. `sampled`: of these variants, or True."""
    code, out, errors = output_of(command + ['--list'] + options)
    numbers = sample.sample_of((line for line in lines_of(out) if 'number' in line), None if sampled is True else sampled)
    if not numbers:
        raise Misused(f'tessera_vendors --list ended with {code}: {errors.strip()[-500:]}')
    return options + ['--programs', ','.join(map(str, numbers))]


def vulkan_lines(program, target, options, sampled):
    command = TOOL + ['run', target['name'], program, 'vulkan']
    asked = of_sample(command, options, sampled) if sampled else options
    code, out, errors = output_of(command + asked)
    lines = lines_of(out)
    if code not in (0, 1) or not lines:
        lines.append({'case': target['name'], 'error': f'tessera_vendors ended with {code}: {errors.strip()[-500:]}'})

    def alone(line):
        _, out, _ = output_of(command + options + ['--programs', str(line['number'])])
        return next((found for found in lines_of(out) if found.get('number') == line['number'] and 'seconds' in found), line)
    return [quickest(line, lambda: alone(line)) for line in lines]


def quickest(first, compile_again):
    """What took too long is compiled again, up to four times, between two looks at how slow this machine is just now; the least
    seconds count."""
    result = first
    for _ in range(4):
        if result.get('seconds', 0) <= rules.LONGEST_SECONDS:
            break
        again, slow = yardstick.timed_beside(compile_again)
        again = {**again, 'seconds': round(again['seconds'] / slow, 2)} if 'seconds' in again else again
        result = min(result, again, key=lambda one: one.get('seconds', 0))
    return result


def compiler_of(target):
    """Compiles a line of a folder's sources, or knows what came of it."""
    _, words, _ = output_of(TOOL + ['command', target['compiler']])
    _, version, _ = output_of(TOOL + ['version', target['compiler']])
    _, folder, _ = output_of(TOOL + ['path'])
    memory = kept.Kept(folder.strip(), target['name'], version.strip())
    cpu = target.get('cpu', target['name'])

    def compile_it(sources, line):
        key = memory.key((pathlib.Path(sources) / line['file']).read_text(encoding='utf-8'), line, cpu)
        found = memory.get(key)
        if found is None:
            def compile_now():
                return offline.compile_one(words.split('\n')[:-1], target['compiler'], sources, line, cpu)
            found = quickest(compile_now(), compile_now)
            if 'error' not in found and found['seconds'] <= rules.LONGEST_SECONDS:
                memory.put(key, {name: value for name, value in found.items() if name not in line})
        return {**line, **found}
    return compile_it, version.strip(), memory


def profile_for(target, folder):
    """The recorded profile, compiling for this very generation: one of NVIDIA's or Intel's stands for several."""
    path = ROOT / 'tests' / 'devices' / (target['profile'] + '.json')
    said = {'nvidia': target['name'], 'intel': 'ip_' + target.get('ip', '')}.get(target['compiler'])
    if said is None:
        return path
    text = re.sub(r'("compiler": ".* )(sm_|ip_)[\d.]+"', rf'\g<1>{said}"', path.read_text(encoding='utf-8'))
    path = pathlib.Path(folder) / 'profile.json'
    path.write_text(text, encoding='utf-8')
    return path


def opencl_lines(program, target, options, sampled):
    why = offline.missing(target['compiler'])
    if why:
        raise Skipped(why)
    compile_it, version, memory = compiler_of(target)
    try:
        with tempfile.TemporaryDirectory() as folder:
            command = [program, '--profile', str(profile_for(target, folder))]
            if sampled:
                options = of_sample(command, options, sampled)
            _, out, errors = output_of(command + ['--sources', folder] + options)
            for line in lines_of(out):
                if 'file' in line:
                    yield compile_it(folder, line)
                elif 'device' in line:
                    yield {**line, 'device': {**line['device'], 'driver': version}}
                else:
                    yield line
            if errors.strip():
                yield {'case': target['name'], 'error': errors.strip()[-500:]}
    finally:
        memory.write()


def seconds_by_family(built):
    families = {}
    for line in built:
        families[line['family']] = families.get(line['family'], 0) + line.get('seconds', 0)
    most_first = sorted(families.items(), key=lambda item: -item[1])
    return ', '.join(f'{family} {seconds:.1f}' for family, seconds in most_first)


def check(program, target, options, folder, sampled):
    build = vulkan_lines if target['platform'] == 'vulkan' else opencl_lines
    lines = list(build(program, target, options, sampled))
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / (target['name'] + '.json')).write_text(''.join(json.dumps(line) + '\n' for line in lines),
                                                         encoding='utf-8')
    failures, warnings = rules.judge(target, lines)
    built = [line for line in lines if 'defines' in line]
    print(f"{target['name']} ({target['gpu']}, {target['platform']}): {len(built)} programs, "
          f"{sum(line.get('seconds', 0) for line in built):.0f} s of CPU time, the longest "
          f"{max((line.get('seconds', 0) for line in built), default=0):.1f} s; {len(failures)} failures")
    if built:
        print('  seconds by family, those of what was known among them:', seconds_by_family(built))
    for text in warnings:
        print('  warning:', text)
    for text in failures[:MOST_PRINTED]:
        print('  FAILED', text)
    if len(failures) > MOST_PRINTED:
        print(f'  and {len(failures) - MOST_PRINTED} more')
    return not failures and bool(built)


def same_profile(program, target):
    """The stand-in is told what it says by hand, so this is its test, too."""
    if target['platform'] != 'vulkan':
        return True
    _, out, _ = output_of(TOOL + ['run', target['name'], program, 'vulkan', '--only-profile'])
    now = json.loads(out)
    profile = target.get('profile', target['name'] + '_vulkan')
    recorded = json.loads((ROOT / 'tests' / 'devices' / (profile + '.json')).read_text(encoding='utf-8'))
    # Another release of the driver, and the name of the CPU that this runs on.
    differ = [key for key in {**now, **recorded} if key not in ('driver', 'api_version', 'uuid', 'name', 'global_memory')
              and now.get(key) != recorded.get(key)]
    for key in differ:
        print(f"  FAILED {target['name']}: '{key}' is {now.get(key)}, and recorded is {recorded.get(key)}")
    return not differ


def read_words(arguments):
    """Words, options for tessera_vendors, the folder of --save, whether --sample is there, or of which variants."""
    words, options, folder, sampled, variants = [], [], None, False, None
    rest = iter(arguments)
    for word in rest:
        if word == '--sample':
            sampled = True
        elif word.startswith('--'):
            value = next(rest, None)
            if value is None:
                raise Misused(f"'{word}' takes a value")
            if word == '--save':
                folder = pathlib.Path(value)
            elif word == '--variants':
                variants = value.split(',')
            else:
                options += [word, value]
        else:
            words.append(word)
    if variants and not sampled:
        raise Misused("'--variants' chooses among the programs of '--sample'")
    return words, options, folder, variants or sampled


def asked_for(names):
    known = {target['name']: target for target in targets()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Misused(f"no target is called {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names]


def run(arguments):
    if not arguments or '--help' in arguments or '-h' in arguments:
        print(__doc__, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    words, options, folder, sampled = read_words(arguments)
    if words == ['targets']:
        for target in targets():
            print(target['name'], '(default)' if target.get('default') else '')
        return 0
    if len(words) < 3 or words[0] not in ('check', 'profiles'):
        raise Misused("this takes 'check PROGRAM TARGET...', 'profiles PROGRAM TARGET...' or 'targets'; --help says more")
    program = words[1]
    if not os.access(program, os.X_OK):
        raise Misused(f"'{program}' is no program; this takes the build's tessera_vendors")
    good, skipped = True, 0
    for target in asked_for(words[2:]):
        try:
            if words[0] == 'check':
                good = check(program, target, options, folder, sampled) and good
            else:
                good = same_profile(program, target) and good
        except Skipped as why:
            skipped += 1
            print(f"{target['name']}: skipped: {why}")
    if not good:
        return 1
    return SKIPPED if skipped == len(words[2:]) else 0


def main():
    try:
        return run(sys.argv[1:])
    except Misused as why:
        print(why, file=sys.stderr)
        return 2


if __name__ == '__main__':
    sys.exit(main())
