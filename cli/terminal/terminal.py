"""The terminal, or the file in its place: the only way in which the command line says something."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task
from rich.table import Column
from rich.table import Table as RichTable

from epcheck.cli.terminal.text import Part, Text, printable, text


class Table:
    """Rows of cells.

    title: above it. ruled: a line below the header. indented: a space at both ends. header: whether names of columns
    are shown.
    """

    def __init__(self, title: str = "", *, ruled: bool = False, indented: bool = False, header: bool = True) -> None:
        self.rich = RichTable(
            title=text(title) if title else None, title_justify="left", show_header=header,
            box=box.SIMPLE if ruled else None, pad_edge=indented or ruled,
        )  # fmt: skip

    def add_column(
        self, name: str, *, right: bool = False, style: str = "", whole: bool = False, fold: bool = False
    ) -> None:
        """right: numbers, at the right. whole: cells are not wrapped. fold: cells are wrapped within words."""
        self.rich.add_column(
            text(name), justify="right" if right else "left", style=style or None, no_wrap=whole,
            overflow="fold" if fold else "ellipsis",
        )  # fmt: skip

    def add_row(self, *cells: Part, style: str = "") -> None:
        self.rich.add_row(*map(text, cells), style=style or None)


class Words(ProgressColumn):
    """A column of a progress display: the parts that a task has in a field, `description` where it has none."""

    def __init__(self, field: str, column: Column | None = None) -> None:
        super().__init__(column)
        self._field = field

    def render(self, task: Task) -> Text:
        parts: tuple[Part, ...] = task.fields.get(self._field, (task.description,))
        return text(*parts)


class Terminal:
    """Prints to stdout, stderr or a file. What it prints is escaped here, and nowhere else.

    width: of tables in characters, where it is no terminal; rich has the environment's COLUMNS, or 80. colours: whether
    it has them; by default where it is a terminal.
    """

    def __init__(
        self, file: IO[str] | None = None, *, stderr: bool = False, width: int = 0, colours: bool | None = None
    ) -> None:
        self._console = Console(file=file, stderr=stderr, force_terminal=colours, highlight=False, emoji=False)
        if width and not (self._console.is_terminal and file is None):
            self._console.width = width

    @property
    def is_terminal(self) -> bool:
        """Whether it shows colours; CI systems ask for them where there is no terminal."""
        return self._console.is_terminal

    @property
    def is_screen(self) -> bool:
        """Whether it is a terminal on which a line can be drawn again."""
        return self.is_terminal and self._console.file.isatty()

    def print(self, *parts: Part, style: str = "") -> None:
        """One line, which the terminal wraps: paths and commands are copied from it."""
        self._console.print(text(*parts, style=style), soft_wrap=True)

    def print_table(self, table: Table) -> None:
        self._console.print(table.rich)

    def print_lines(self, lines: Iterable[str]) -> None:
        """Many lines without a style, in a hundredth of the time."""
        file = self._console.file
        for line in lines:
            file.write(f"{printable(line)}\n")
        file.flush()

    def print_document(self, document: str) -> None:
        """A document whose lines are its own, such as a file of expectations or JSON."""
        self.print_lines(document.removesuffix("\n").split("\n"))

    def progress(self, *columns: ProgressColumn, **settings: Any) -> Progress:
        """A progress display. settings: of rich's. Its columns of words are `Words`."""
        return Progress(*columns, console=self._console, **settings)

    @contextmanager
    def working(self) -> Iterator[Callable[[str], None]]:
        """A line that says what is being done; what is entered takes it."""
        with self._console.status("") as status:
            yield lambda words: status.update(text(words))
