#!/usr/bin/env python3
"""Packs the simulator for a page in a browser: WebAssembly, compressed, as text in a script.

A script is what a page that lies in a folder can load without a server. ``engine.py WASM OUT``.
"""

import base64
import gzip
import sys
from pathlib import Path

wasm, out = map(Path, sys.argv[1:])
packed = base64.b64encode(gzip.compress(wasm.read_bytes(), mtime=0)).decode()
out.write_text(f'self.BLUEWATER_ENGINE = "{packed}";\n')
print(f"{out}: {out.stat().st_size / 1e3:.0f} kB")
