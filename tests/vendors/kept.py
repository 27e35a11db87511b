# SPDX-License-Identifier: Apache-2.0
"""What compilers said before, beside them in the folder of tools/vendors.sh: a program whose text, target and compiler
are the same is not compiled again. A folder without it costs the whole time once."""
import hashlib
import json
import os
import pathlib

MOST = 5000  # programs of a target; what was not asked for the longest goes first


class Kept:
    def __init__(self, folder, target, version):
        self.path = pathlib.Path(folder) / 'compiled' / (target + '.json')
        # How a program is compiled counts as the compiler does.
        self.version = version + (pathlib.Path(__file__).resolve().parent / 'offline.py').read_text(encoding='utf-8')
        try:
            self.said = json.loads(self.path.read_text(encoding='utf-8'))
        except (OSError, ValueError):
            self.said = {}

    def key(self, text, line, cpu):
        words = '\0'.join((self.version, cpu, line['entry'], line.get('ptx_target', ''), text))
        return hashlib.sha256(words.encode()).hexdigest()

    def get(self, key):
        found = self.said.pop(key, None)
        if found is not None:
            self.said[key] = found  # now the last
        return found

    def put(self, key, result):
        self.said[key] = result

    def write(self):
        """A folder that can't be written is none of the caller's business: the next run compiles again."""
        names = list(self.said)[-MOST:]
        before = self.path.with_suffix(f'.{os.getpid()}')
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            before.write_text(json.dumps({name: self.said[name] for name in names}), encoding='utf-8')
            before.replace(self.path)
        except OSError:
            before.unlink(missing_ok=True)
