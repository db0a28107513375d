"""The command line: it parses and delegates; a command is one module of `commands/` around one documented call.

Exit codes of every command: 0 as it should be, 1 conformance failures, 2 bad input or it could not run,
130 interrupted.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from epcheck.api.option import OUTPUT, PANELS
from epcheck.cli import cache, completion, usage_error
from epcheck.cli.outline import Outline, build_app, describe_app
from epcheck.cli.terminal import failure
from epcheck.cli.terminal.exit_codes import CANNOT, INTERRUPTED

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Begin here": {
        "run": "suite.run",
        "nightly": "suite.nightly",
        "show": "suite.show",
        "repro": "suite.repro",
        "diff": "runs.diff",
        "report": "runs.report",
        "speed": "suite.speed",
        "validate": "models.validate",
        "status": "machine.status",
    },
    "The suite": {
        "list": "suite.listing",
        "coverage": "suite.coverage",
        "fuzz": "suite.fuzz",
        "directml": "suite.directml",
    },
    "A failure": {
        "replay": "suite.replay",
        "bisect": "suite.bisect",
        "expect": "suite.expect",
        "report-bug": "suite.report_bug",
    },
    "Models": {
        "doctor": "models.doctor",
        "fix": "models.fix",
        "reduce": "models.reduce",
        "harvest": "models.harvest",
        "zoo": "models.zoo",
    },
    "Finished runs": {
        "trend": "runs.trend",
        "site": "runs.site",
        "merge": "runs.merge",
        "store": "runs.store",
    },
    "Providers and this machine": {
        "demo": "machine.demo",
        "env": "machine.env",
        "lab": "machine.lab",
        "cache": "machine.cache",
        "probe": "machine.probe",
        "claims": "suite.claims",
        "profile": "runs.profile",
        "certify": "suite.certify",
    },
}
"""The commands that most people need, and what the others are about, as `--help` shows them -> command -> its module of
`commands/`, whose `app` it is."""

MODULES = {name: module for group in GROUPS.values() for name, module in group.items()}

EXAMINING = frozenset(("validate", "doctor", "fix", "reduce"))
"""Commands that examine one model in a process of its own, which is started before the command is imported: each takes
a second to import what it needs."""

_GROUP = {name: title for title, group in GROUPS.items() for name in group}

OUTLINES = "outlines.json"
"""The file in the folder of the cache that has the outlines of all commands."""

OBJECTS_BETWEEN_COLLECTIONS = 10_000
"""Records are plain data without cycles; at Python's own 700 a fifth of the time in which a store is opened goes into
looking for cycles."""


class _ProgramOptions(typer.core.TyperCommand):
    """The options that stand before the command."""

    def get_usage(self, ctx: Any) -> str:
        return f"{ctx.command_path} OPTIONS COMMAND: for all commands"


class _Commands(typer.core.TyperGroup):
    """The commands, each imported when it is called: all of them take several times as long as one.

    None is imported for `--help` and for completion: their outlines are kept.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": dict.fromkeys(MODULES)})
        self._outlines: Mapping[str, Outline] = {}
        self._listed = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, then the options of the program itself, which typer would show before them."""
        self._outlines, self._listed = load_outlines(), True
        options: list[Any] = list(self.get_params(ctx))
        shown = [option for option in options if not option.hidden]
        for option in shown:
            option.hidden = True
        super().format_help(ctx, formatter)
        for option in shown:
            option.hidden = False
        _ProgramOptions("epcheck", params=self.params).format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """The commands that begin so."""
        self._outlines, self._listed = load_outlines(), True
        return super().shell_complete(ctx, incomplete)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if (ctx.resilient_parsing or _asks_for_help(args)) and cache.find_path(OUTLINES):
            self._outlines = load_outlines()
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in MODULES:
            return None
        if self._listed:
            return typer.core.TyperCommand(
                cmd_name, help=_first_sentence(self._outlines[cmd_name].help), rich_help_panel=_GROUP[cmd_name]
            )
        if self._outlines:
            app = build_app(self._outlines[cmd_name])
        else:
            if cmd_name in EXAMINING:
                _prepare_examiner(cmd_name)
            app = _import_app(cmd_name)
        command = typer.main.get_command(app)
        command.name = cmd_name
        _put_help_into_a_panel(command, ctx)
        return command

    def make_context(self, *args: Any, **settings: Any) -> Any:
        with _one_sentence():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        with _one_sentence(ctx):
            return super().invoke(ctx)


@contextmanager
def _one_sentence(ctx: Any = None) -> Iterator[None]:
    """Turn what typer says of a command line, with its usage and a box, into one sentence and exit code 2."""
    try:
        yield
    except usage_error.UsageError as error:
        if usage_error.asks_for_help(error):
            raise
        called = f"epcheck {(ctx and ctx.invoked_subcommand) or ''}".rstrip()
        failure.say(usage_error.describe(error, called))
        raise typer.Exit(CANNOT) from None


def _put_help_into_a_panel(command: Any, ctx: Any) -> None:
    """`--help` is among the outputs of a command whose options are in panels; alone, it would have one of its own."""
    if any(getattr(each, "rich_help_panel", None) in PANELS for each in command.params):
        command.get_help_option(ctx).rich_help_panel = OUTPUT


def _asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether a command is called for its help alone. arguments: of the command line, the command first."""
    *words, last = arguments
    return last == "--help" and bool(words) and not any(word.startswith("-") for word in words)


def _first_sentence(text: str) -> str:
    """Of a docstring, on one line: what the list of commands shows of each."""
    return " ".join(text.split()).partition(". ")[0].rstrip(".") + "."


def _prepare_examiner(command: str) -> None:
    from epcheck.api.models.examining.examiner_process import EXAMINED, prepare_examiner

    prepare_examiner(EXAMINED[command])


def _import_app(name: str) -> typer.Typer:
    app: typer.Typer = importlib.import_module(f"epcheck.cli.commands.{MODULES[name]}").app
    return app


def describe_commands() -> dict[str, Outline]:
    """Command -> what `--help` and completion show of it; it imports them all."""
    return {name: describe_app(_import_app(name)) for name in MODULES}


def load_outlines() -> Mapping[str, Outline]:
    """As `describe_commands`, from the cache where they are kept."""
    return cache.load(OUTLINES, dict[str, Outline], describe_commands)


app = typer.Typer(
    name="epcheck",
    help="Test and compatibility suite for ONNX Runtime execution providers.",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from epcheck.cli.terminal.terminal import Terminal

        Terminal().print(f"epcheck {version('epcheck')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    jail: Annotated[
        bool, typer.Option("--jail/--no-jail", help="Bound what workers may write and reach, where the system can.")
    ] = True,
) -> None:
    """Test and compatibility suite for ONNX Runtime execution providers."""
    if not jail:
        os.environ["EPCHECK_JAIL"] = "off"


def main() -> None:
    """The console script."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    installs_completion = "--install-completion" in sys.argv[1:]
    if installs_completion:  # so that the first Tab is as fast as the others
        load_outlines()
        completion.load_names()
        completion.load_case_ids()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # On Windows a redirected stdout has the code page's encoding: a character that it lacks is no reason to end.
        sys.stdout.reconfigure(errors="backslashreplace")
    code: object = None
    try:
        app(prog_name="epcheck")
    except SystemExit as ended:
        code = ended.code
        if installs_completion and not code:
            completion.amend_scripts()
        raise
    except Exception:
        if "_EPCHECK_COMPLETE" in os.environ:  # a person who pressed Tab gets no traceback between the words
            sys.exit(1)
        raise
    finally:
        _drop_what_cannot_be_written(wait=code != INTERRUPTED)


def _drop_what_cannot_be_written(wait: bool) -> None:
    """What a full disk did not take has been said; Python would try once more at its end, and change the exit code.

    wait: until whoever reads stdout has taken the rest; one who was interrupted does not wait for a pipe that is full.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if wait:
                stream.flush()
                continue
        except OSError:
            pass
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
