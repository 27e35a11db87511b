#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""That the checks of label vendors find what they are for, without any compiler."""
import tempfile
import unittest
import unittest.mock

import kept
import offline
import report
import rules
import sample
import vendors
import yardstick

TARGET = {'name': 'sm_86', 'platform': 'opencl', 'compiler': 'nvidia', 'family': 'nvidia', 'local_memory': 101376}


def program(number=1, **defines):
    return {'name': 'flash_attention.mma.plain', 'case': 'long/f16', 'number': number, 'kernel': 'mma', 'entry': 'mma',
            'family': 'attention',
            'defines': {'WG_X': 128, 'BLOCK_Q': 64, 'HEAD_DIM': 128, **defines}}


def judged(version='13.0', **said):
    known = rules.allowances()['compilers']['nvidia']
    device = {'device': {'driver': 'clang, ptxas ' + (known if version == '13.0' else version), 'local_memory': 49152}}
    return rules.judge(TARGET, [device, {**program(), 'seconds': 1, **said}])


class Sample(unittest.TestCase):
    def test_a_larger_tile_is_compiled(self):
        lines = [program(1), program(2, BLOCK_Q=128), program(3, BLOCK_Q=128, STAGES=2)]
        self.assertEqual(sample.sample_of(lines), [1, 2, 3])

    def test_other_extents_are_not(self):
        lines = [program(1, WG_X=64), program(2, WG_X=256), program(3, SPLITS=4), program(4, LANES=16)]
        self.assertEqual(sample.sample_of(lines), [2])

    def test_the_most_operands_are_taken_and_each_once(self):
        lines = [program(1, FEATURES=512), program(2, FEATURES=927), program(3, FEATURES=1025), program(4, FEATURES=1024)]
        self.assertEqual(sample.sample_of(lines[:2]), [2])
        self.assertEqual(sample.sample_of(lines), [2, 4])

    def test_lanes_of_a_matrix_count(self):
        lines = [program(1, MATRIX_M=16, LANES=32), program(2, MATRIX_M=16, LANES=64)]
        self.assertEqual(sample.sample_of(lines), [1, 2])

    def test_each_storage_type_is_compiled_once(self):
        lines = [program(1, A_TYPE=2), program(2, A_TYPE=1), program(3, BLOCK_Q=128, A_TYPE=1), program(4, BLOCK_Q=128, A_TYPE=2)]
        self.assertEqual(sample.sample_of(lines), [1, 2, 4])

    def test_of_what_an_item_holds_the_most_is_taken(self):
        lines = [program(1, VECTORS=2), program(2, VECTORS=4), program(3, ROWS=8, COLUMNS=1), program(4, ROWS=2, COLUMNS=4),
                 program(5, ROWS=2, COLUMNS=2), program(6, VECTORS=2, CENTER=1)]
        self.assertEqual(sample.sample_of(lines), [2, 3, 4, 6])

    def test_lengths_count_by_their_width(self):
        lines = [program(1, HEAD_DIM=72), program(2, HEAD_DIM=128), program(3, HEAD_DIM=40), program(4, HEAD_DIM=192)]
        self.assertEqual(sample.sample_of(lines), [2, 3, 4])


    def test_of_some_variants_only_those(self):
        lines = [program(1), {**program(2), 'name': 'flash_attention.tile.plain', 'kernel': 'tile'}, program(3, BLOCK_Q=128)]
        self.assertEqual(sample.sample_of(lines, ['mma']), [1, 3])

    def test_every_pool_is_compiled_once(self):
        lines = [program(1, POOL=0, ALIGNED=0), program(2, POOL=1, ALIGNED=0), program(3, POOL=0, ALIGNED=1)]
        self.assertEqual(sample.sample_of(lines), [2, 3])
        self.assertEqual(sample.sample_of(lines + [program(4, POOL=1, ALIGNED=1)]), [1, 2, 4])


class Rules(unittest.TestCase):
    def test_what_is_clean_passes(self):
        self.assertEqual(judged(spills=0, scratch=0, local=4096), ([], []))

    def test_what_is_not_fails(self):
        for said, what in (({'spills': 1}, '1 registers spilled'), ({'scratch': 8}, '8 bytes of scratch'),
                           ({'local': 101377}, '101377 bytes of local memory'), ({'seconds': 3.1}, '3.1 s of CPU time'),
                           ({'error': 'no'}, 'does not build')):
            failures, _ = judged(**said)
            self.assertEqual(len(failures), 1, said)
            self.assertIn(what, failures[0])

    def test_another_compiler_asks_for_a_new_record(self):
        failures, warnings = judged(version='0.1', spills=1)
        self.assertEqual(failures, [])
        self.assertEqual(len(warnings), 2)


class Seconds(unittest.TestCase):
    def of(self, first, again, slowness):
        with unittest.mock.patch.object(yardstick, 'slowness', return_value=slowness):
            return vendors.quickest({'seconds': first}, lambda: {'seconds': again})['seconds']

    def test_what_is_quick_is_compiled_once(self):
        self.assertEqual(vendors.quickest({'seconds': 2.9}, None), {'seconds': 2.9})

    def test_a_slow_machine_is_counted_out(self):
        self.assertEqual(self.of(first=6.0, again=5.0, slowness=2), 2.5)

    def test_a_slow_program_stays_slow(self):
        self.assertEqual(self.of(first=6.0, again=6.5, slowness=1), 6.0)
        self.assertEqual(self.of(first=9.0, again=8.0, slowness=2), 4.0)

    def test_of_several_looks_the_best_counts(self):
        looks = iter((3.6, 3.4, 3.2, 2.8))
        with unittest.mock.patch.object(yardstick, 'slowness', return_value=1):
            self.assertEqual(vendors.quickest({'seconds': 4.0}, lambda: {'seconds': next(looks)}), {'seconds': 2.8})

    def test_no_machine_is_quicker_than_the_yardstick(self):
        self.assertGreaterEqual(yardstick.slowness(), 1.0)


class Ptx(unittest.TestCase):
    def test_a_work_group_of_512_is_told(self):
        module = ('define dso_local ptx_kernel void @other() #1 !reqd_work_group_size !3 {\n}\n'
                  'define dso_local ptx_kernel void @mma(ptr %0) local_unnamed_addr #3 !kernel_arg_type !2 !reqd_work_group_size !4 {\n'
                  '}\n!3 = !{i32 64, i32 1, i32 1}\n!4 = !{i32 8, i32 64, i32 1}\n')
        told = offline.with_work_group(module, 'mma')
        self.assertIn('#3 "nvvm.reqntid"="8,64,1" !kernel_arg_type !2', told)
        self.assertEqual(told.count('nvvm.reqntid'), 1)

    def spills(self, by_itself, alone, ptx='.reqntid 128, 1, 1\n{'):
        def assembled(ptx, *_):
            return {'registers': 168, 'scratch': 8, 'spills': alone if '.minnctapersm 1' in ptx else by_itself}
        with unittest.mock.patch('offline.assembled', assembled):
            return offline.as_launched(ptx, 'mma', 'sm_86', '')

    def test_what_ptxas_chooses_to_spill_stands_beside(self):
        found = self.spills(5, 0)
        self.assertEqual((found['spills'], found['by_choice']['spills']), (0, 5))
        line = {**program(), 'seconds': 1, **found}
        self.assertIn('sm_86 1 (most 5)', report.by_choice([(TARGET, [line])]))
        self.assertEqual(report.by_choice([(TARGET, [{**line, 'spills': 5}])]), '')

    def test_what_an_item_cannot_have_spills(self):
        self.assertEqual(self.spills(5, 5)['spills'], 5)
        self.assertNotIn('by_choice', self.spills(0, 0))
        self.assertNotIn('by_choice', self.spills(0, 7, offline.promoted('.reqntid 384, 1, 1\n{')))


class Families(unittest.TestCase):
    def test_a_new_one_has_a_row(self):
        lines = [{**program(), 'seconds': 1}, {**program(), 'family': 'state_space', 'seconds': 2, 'spills': 3, 'waves': 8}]
        self.assertEqual(report.families(TARGET, lines), ['| state space | 1 | 0 | 3 | 0 | 0 | 8 | 2.0 |'])
        self.assertEqual(report.what_of(lines, {'attention', 'state_space'}), 'f16 at dims 128')
        self.assertEqual(report.what_of(lines[:1], {'attention', 'state_space'}), 'f16 at dims 128: attention')


class Kept(unittest.TestCase):
    def test_a_change_of_text_or_compiler_is_compiled_again(self):
        with tempfile.TemporaryDirectory() as folder:
            memory = kept.Kept(folder, 'sm_86', 'ptxas 13.0')
            key = memory.key('text', program(), 'sm_86')
            memory.put(key, {'spills': 0})
            memory.write()
            memory = kept.Kept(folder, 'sm_86', 'ptxas 13.0')
            self.assertEqual(memory.get(key), {'spills': 0})
            self.assertNotEqual(memory.key('text with a larger tile', program(), 'sm_86'), key)
            self.assertNotEqual(memory.key('text', program(), 'sm_89'), key)
            self.assertNotEqual(kept.Kept(folder, 'sm_86', 'ptxas 13.1').key('text', program(), 'sm_86'), key)

    def test_a_damaged_record_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            memory = kept.Kept(folder, 'sm_86', 'ptxas 13.0')
            memory.write()
            memory.path.write_text('{"', encoding='utf-8')
            self.assertEqual(kept.Kept(folder, 'sm_86', 'ptxas 13.0').said, {})


unittest.main()
