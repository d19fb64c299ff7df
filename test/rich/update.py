"""Writes github.json: what GitHub's own cmark-gfm, with footnotes, makes of each shape in shapes.txt.

To be run after shapes.txt has changed, with the parser in an environment of its own:

    python3 -m venv /tmp/cmark && /tmp/cmark/bin/pip install cmarkgfm==2025.10.22
    /tmp/cmark/bin/python test/rich/update.py
"""

import json
import pathlib
import re

import cmarkgfm
from cmarkgfm.cmark import Options

HERE = pathlib.Path(__file__).parent
OPTIONS = Options.CMARK_OPT_FOOTNOTES | Options.CMARK_OPT_UNSAFE

parts = re.split(r"^=== (.*)\n", (HERE / "shapes.txt").read_text(), flags=re.M)[1:]
answers = {
    name: cmarkgfm.github_flavored_markdown_to_html(text.removesuffix("\n"), OPTIONS)
    for name, text in zip(parts[::2], parts[1::2])
}
(HERE / "github.json").write_text(json.dumps(answers, ensure_ascii=False, indent=2) + "\n")
