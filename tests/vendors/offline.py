# SPDX-License-Identifier: Apache-2.0
"""Compiles OpenCL C for GPUs that are not here, with the compilers that tools/vendors.sh gets.

Each function takes the words that start a compiler and the line that tessera_vendors wrote of a program, and returns what the compiler says by the names that
pipelines.cpp gives to Vulkan's statistics, or {'error': its log}.
"""
import os
import re
import shutil
import subprocess
import tempfile

from yardstick import children_seconds

SHARED_OF_A_MODULE = 48 * 1024  # above, ptxas takes shared memory of the launch only


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout


def number(pattern, text, fallback=0):
    found = re.search(pattern, text, re.S)
    return int(found.group(1)) if found else fallback


def amd(tool, path, line, cpu, work):
    out = f'{work}/out.s'
    code, log = run(tool + ['-x', 'cl', '-cl-std=CL1.2', f'-mcpu={cpu}', '-O3', '-w', '-Xclang',
                            '-finclude-default-header', '-S', '-o', out, path])
    if code != 0:
        return {'error': log[:1500]}
    text = open(out).read()
    # The kernel's own record among those of the module: from its registers to the width of its waves.
    found = re.search(r'- \.a(?:gpr_count|ddress_space|rgs).*?\.wavefront_size: *\d+', text, re.S)
    record = found.group(0) if found else text
    return {'registers': number(r'\.vgpr_count: *(\d+)', record),
            'spills': number(r'\.vgpr_spill_count: *(\d+)', record),
            'scalar_spills': number(r'\.sgpr_spill_count: *(\d+)', record),
            'scratch': number(r'\.private_segment_fixed_size: *(\d+)', record),
            'local': number(r'\.group_segment_fixed_size: *(\d+)', record),
            'subgroup': number(r'\.wavefront_size: *(\d+)', record),
            'waves': number(r'; Kernel info:.*?; Occupancy: (\d+)', text)}


def intel(tool, path, line, cpu, work):
    options = '-cl-std=CL1.2' + (' -cl-intel-256-GRF-per-thread' if line['defines'].get('LARGE_GRF') else '')
    code, log = run(tool + ['compile', '-file', path, '-device', cpu, '-options', options, '-out_dir', work,
                            '-output', 'out', '-output_no_suffix'])
    if code != 0 or 'Build succeeded' not in log:
        return {'error': log[:1500]}
    result = {'spills': 0, 'scratch': 0}
    # A warning, where it spills: "... compiled SIMD8 allocated 128 regs and spilled around 12".
    found = re.search(r'compiled SIMD(\d+) allocated (\d+) regs(?: and spilled around (\d+))?', log)
    if found:
        result.update(subgroup=int(found.group(1)), registers=int(found.group(2)), spills=int(found.group(3) or 0))
    for name in os.listdir(work):
        if not name.startswith('out'):
            continue
        # The binary is ELF with a section .ze_info in YAML.
        with open(f'{work}/{name}', 'rb') as file:
            data = file.read().decode('latin-1')
        for field, ours in (('simd_size', 'subgroup'), ('grf_count', 'registers'), ('slm_size', 'local')):
            if ours not in result and re.search(field + r': *\d', data):
                result[ours] = number(field + r': *(\d+)', data)
        result['scratch'] = max(result['scratch'], number(r'private_size: *(\d+)', data))
    return result


def without_stub(module, entry):
    """clang's entry calls the kernel as a function, to which it hands copies of argument structs in local memory, and
    which is compiled twice. The function becomes the entry, as in drivers."""
    module = re.sub(rf'^define dso_local ptx_kernel void @{entry}\(.*?^}}\n', '', module, flags=re.M | re.S)
    return module.replace(f'define dso_local void @__clang_ocl_kern_imp_{entry}(', f'define dso_local ptx_kernel void @{entry}(')


def with_work_group(module, entry):
    """The size that OpenCL C requires of a work-group, for LLVM's backend, which has a word of its own for it: without
    .reqntid in PTX, ptxas knows no limit but 255 registers, where an item of 512 has 128."""
    head = re.search(rf'^define dso_local ptx_kernel void @{entry}\(.*?!reqd_work_group_size !(\d+)', module, flags=re.M)
    items = re.findall(r'i32 (\d+)', re.search(rf'^!{head[1]} = !\{{(.*)\}}', module, flags=re.M)[1])
    said = head[0].replace(' !', f' "nvvm.reqntid"="{",".join(items)}" !', 1)
    return module[:head.start()] + said + module[head.end():]


def one_group_fits(ptx):
    return re.sub(r'^(\s*\.reqntid [^\n]*)$', r'\1\n.minnctapersm 1', ptx, flags=re.M)


def promoted(ptx):
    """As device/opencl/ptx_promotion does: uncovers what plain sm_90 does not know, and says that one group fits."""
    return one_group_fits(ptx.replace('//@', '   '))


def assembled(ptx, entry, cpu, work):
    """What ptxas says."""
    arrays = re.findall(r'^\s*\.shared \.align \d+ \.b8 (\S+)\[(\d+)\];', ptx, re.M)
    shared = sum(int(size) for _, size in arrays)
    if shared > SHARED_OF_A_MODULE:
        ptx = re.sub(r'^\s*\.shared \.align \d+ \.b8 \S+\[\d+\];', '', ptx, flags=re.M)
        declared = ''.join(f'.extern .shared .align 16 .b8 {name}[];\n' for name, _ in arrays)
        ptx = ptx.replace('.address_size 64\n', '.address_size 64\n' + declared, 1)
    with open(f'{work}/out.ptx', 'w') as file:
        file.write(ptx)
    code, log = run(['ptxas', f'-arch={cpu}', '-v', '-O3', f'{work}/out.ptx', '-o', f'{work}/out.cubin'])
    said = re.search(rf"Compiling entry function '{entry}'(.*?Used \d+ registers.*?\n)", log, re.S)
    if code != 0 or not said:
        return {'error': log[:1500]}
    return {'registers': number(r'Used (\d+) registers', said.group(1)),
            'spills': number(r'(\d+) bytes spill stores', said.group(1)) // 4,
            'scratch': number(r'(\d+) bytes stack frame', said.group(1)),
            'local': shared or number(r'(\d+) bytes smem', said.group(1)), 'subgroup': 32}


def as_launched(ptx, entry, cpu, work):
    """By its own count of cycles ptxas may spill a few registers so that one more group shares a multiprocessor. Told that
    one is enough, it spills what an item can't have; what it does by itself stands beside it, with no part in the seconds."""
    result = assembled(ptx, entry, cpu, work)
    if not result.get('spills') or '.minnctapersm' in ptx:
        return result
    start = children_seconds()
    alone = assembled(one_group_fits(ptx), entry, cpu, work)
    return {**alone, 'by_choice': {key: result[key] for key in ('registers', 'spills', 'scratch')},
            'beside': children_seconds() - start}


def nvidia(tool, path, line, cpu, work):
    ptx, before, module = f'{work}/out.ptx', f'{work}/before.h', f'{work}/out.ll'
    with open(before, 'w') as file:  # libclc expects these in CUDA's libdevice
        file.write('float __nv_rsqrtf(float x) { float y; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }\n'
                   'float __nv_sqrtf(float x) { float y; asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }\n'
                   'float __nv_logf(float x) { float y; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y * 0.6931472f; }\n'
                   'int __nv_isinff(float x) { return (as_uint(x) & 0x7fffffffu) == 0x7f800000u; }\n'
                   'int __nv_isnanf(float x) { return (as_uint(x) & 0x7fffffffu) > 0x7f800000u; }\n')
    cpu_of = ['-Xclang', '-target-feature', '-Xclang', '+ptx87', '-Xclang', '-target-cpu', '-Xclang', cpu, '-O3', '-w', '-S']
    code, log = run(tool + ['-x', 'cl', '-cl-std=CL1.2', '-fgnu-keywords', '-include', before] + cpu_of +
                    ['-Xclang', '-finclude-default-header', '-emit-llvm', '-o', module, path])
    if code == 0:
        with open(module) as file:
            text = with_work_group(without_stub(file.read(), line['entry']), line['entry'])
        with open(module, 'w') as file:
            file.write(text)
        code, log = run(tool + ['-x', 'ir', '-Xclang', '-disable-llvm-passes'] + cpu_of + ['-o', ptx, module])
    if code != 0:
        return {'error': log[:1500]}
    with open(ptx) as file:
        text = file.read()
    return as_launched(promoted(text) if line.get('ptx_target') else text, line['entry'], cpu, work)


COMPILERS = {'amd': amd, 'intel': intel, 'nvidia': nvidia}


def missing(compiler):
    """Why this compiler can't be had, or None."""
    if compiler == 'nvidia' and shutil.which('ptxas') is None:
        return 'ptxas is not here, and no package of Debian main has it'
    return None


def compile_one(tool, compiler, folder, line, cpu):
    start = children_seconds()
    with tempfile.TemporaryDirectory() as work:
        result = COMPILERS[compiler](tool, f'{folder}/{line["file"]}', line, cpu, work)
    seconds = children_seconds() - start - result.pop('beside', 0)
    return {**line, 'target': cpu, 'seconds': round(seconds, 2), **result}
