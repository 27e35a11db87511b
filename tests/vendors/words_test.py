#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What somebody is told who runs tessera_vendors or vendors.py for the first time: `words_test.py TESSERA_VENDORS`."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = sys.argv.pop() if len(sys.argv) > 1 else ''
SCRIPT = str(HERE / 'vendors.py')
FEW = ['--operation', 'cumsum', '--dtype', 'f32', '--case', 'single']


def run(command, **environment):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=300,
                          env={**os.environ, **environment})


class Program(unittest.TestCase):
    def refused(self, words, sentence, code=2):
        done = run([PROGRAM] + words)
        self.assertEqual((done.returncode, done.stdout), (code, ''), done.stderr)
        self.assertIn(sentence, done.stderr)

    def test_what_it_does_not_take_is_said(self):
        self.refused([], 'name a device')
        self.refused(['host'], 'nothing is compiled')
        self.refused(['nosuch'], "no device 'nosuch'")
        self.refused(['--profile', '/nonexistent'], "can't be read")
        self.refused(['--profile', SCRIPT], 'it is no JSON')

    def test_a_device_that_is_here(self):
        """Its driver need not tell what it compiled."""
        found = 0
        for platform in ('opencl', 'vulkan'):
            done = run([PROGRAM, platform] + FEW)
            if done.returncode == 2 and 'no device' in done.stderr:
                continue
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([line['error'] for line in lines if 'error' in line], [])
            self.assertGreater(sum('seconds' in line for line in lines), 0)
            found += 1
        if found == 0:
            self.skipTest('no device here compiles anything')

    def test_no_program_is_said(self):
        profile = str(HERE.parent / 'devices' / 'turing_opencl.json')
        done = run([PROGRAM, '--profile', profile, '--list', '--operation', 'nosuch'])
        self.assertEqual(done.returncode, 1)
        self.assertIn('no program of this device', done.stderr)


class Script(unittest.TestCase):
    def refused(self, words, sentence):
        done = run([sys.executable, SCRIPT] + words)
        self.assertEqual((done.returncode, done.stdout), (2, ''), done.stderr)
        self.assertIn(sentence, done.stderr)

    def test_what_it_does_not_take_is_said(self):
        self.refused([], 'vendors.py check PROGRAM TARGET')
        self.refused(['check', PROGRAM], "'check PROGRAM TARGET...'")
        self.refused(['check', PROGRAM, 'nosuch'], 'no target is called nosuch; there are polaris10')
        self.refused(['check', '/nonexistent', 'dg2'], "'/nonexistent' is no program")
        self.refused(['check', PROGRAM, 'dg2', '--save'], "'--save' takes a value")
        self.refused(['check', PROGRAM, 'sm_80', '--variants', 'mma'], "among the programs of '--sample'")

    def test_a_sample_of_nothing(self):
        done = run([sys.executable, SCRIPT, 'check', PROGRAM, 'gfx1100', '--sample', '--operation', 'nosuch'])
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        self.assertEqual((done.returncode, done.stderr.count('\n')), (2, 1), done.stderr)
        self.assertIn('no program of this device', done.stderr)

    def test_help_is_no_mistake(self):
        done = run([sys.executable, SCRIPT, '--help'])
        self.assertEqual((done.returncode, done.stderr), (0, ''))

    def test_a_folder_without_compilers_is_skipped(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run([sys.executable, SCRIPT, 'check', PROGRAM, 'dg2'], TESSERA_VENDORS_DIR=folder)
        self.assertEqual(done.returncode, 77)
        self.assertIn('has not unpacked it', done.stdout)


unittest.main()
