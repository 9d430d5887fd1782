"""Makes ``compare.png`` for README and site: ``.venv/bin/python docs/img/draw.py``.

It runs the command below in a temporary folder and keeps the picture with few colours.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

COMMAND = "compare red blue droptail --rate 45mbit --rtt 100ms --flows 400"

with tempfile.TemporaryDirectory() as folder:
    command = [sys.executable, "-m", "bluewater", *COMMAND.split(), "--out", folder]
    subprocess.run(command, check=True)
    picture = Image.open(Path(folder) / "compare-red-blue-droptail.png").convert("RGB")
    small = picture.resize((1184, round(1184 * picture.height / picture.width)), Image.LANCZOS)
    small.quantize(192).save(Path(__file__).parent / "compare.png", optimize=True)
