"""What typer's script for zsh lacks: it answers from the second Tab of a shell on."""

from __future__ import annotations

from pathlib import Path

FIRST_TAB = """
# zsh reads this file at the first Tab of a shell, as the function that is to answer it.
[[ $zsh_eval_context[-1] == loadautofunc ]] && _epcheck_completion "$@"
"""


def answer_first_tab() -> None:
    """Complete the script that typer has just installed, if it did for zsh."""
    script = Path.home() / ".zfunc" / "_epcheck"
    try:
        text = script.read_text(encoding="utf-8")
        if FIRST_TAB not in text:
            script.write_text(f"{text.rstrip()}\n{FIRST_TAB}", encoding="utf-8", newline="\n")
    except OSError:
        return
