"""``purge request``: ask for something to be forgotten."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from purge.cli.common import (
    EPILOG,
    ExpectOption,
    JsonOption,
    ManifestOption,
    console,
    end_with,
    open_engine,
    print_outcome,
)
from purge.errors import UsageFault

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from purge.engine.engine import Shown
    from purge.plan.request import Wanted

SourcesOption = Annotated[
    bool | None,
    typer.Option(
        "--with-sources/--keep-sources",
        show_default=False,
        help="Remove, or keep, the records that a named one derives from. Undecided ones wait.",
    ),
]
CopiesOption = Annotated[
    bool | None,
    typer.Option(
        "--with-copies/--keep-copies",
        show_default=False,
        help="Remove, or keep, records without lineage that hold the text of one named by id.",
    ),
]


SuppressOption = Annotated[
    bool | None,
    typer.Option(
        "--suppress/--no-suppress",
        show_default=False,
        help="From now on remove also what is new and holds what was named: records seen again, "
        "and new statements.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("request", epilog=EPILOG)(request)


def request(
    id: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="[SITE:]ID",
            show_default=False,
            help="A record by its id, compared whole. Repeatable.",
        ),
    ] = None,
    phrase: Annotated[
        list[str] | None,
        typer.Option(
            "--phrase",
            metavar="TEXT",
            show_default=False,
            help="Every record that holds these words. '-' reads them from standard input, or "
            "asks without echo, so that they stand in no shell history. Repeatable.",
        ),
    ] = None,
    subject: Annotated[
        list[str] | None,
        typer.Option(
            "--subject",
            metavar="ID",
            show_default=False,
            help="Every record of a person, by the manifest's subject fields. '-' as above.",
        ),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="KEY=VALUE",
            show_default=False,
            help="Only records whose field says so. Repeatable.",
        ),
    ] = None,
    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="Why, for the record. Kept in the clear."),
    ] = "",
    asked_by: Annotated[
        str,
        typer.Option("--asked-by", metavar="NAME", help="Who asked, for the record."),
    ] = "",
    expect: ExpectOption = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline",
            metavar="SPAN",
            show_default=False,
            help="By when it has to be confirmed or dated (14d). Otherwise as the manifest says: "
            "30 days.",
        ),
    ] = None,
    sources: SourcesOption = None,
    copies: CopiesOption = None,
    suppress: SuppressOption = None,
    show: Annotated[
        bool,
        typer.Option("--show", help="Show the words that were found. Dry run, terminal only."),
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Do it. Otherwise only shown.")] = False,
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget something at every site. Shows what would happen; --apply does it.

    Asking the same again goes on with the request that is open.
    """
    from purge.manifest.spans import read_span
    from purge.plan.request import Decisions

    if show and (apply or as_json or not sys.stdout.isatty()):
        raise UsageFault("--show is for looking: in a dry run, on a terminal, without --json.")
    scopes = dict(pair(text) for text in scope or ())
    decisions = Decisions(sources=sources, copies=copies, suppress=suppress)
    span = None if deadline is None else read_span(deadline)
    if deadline is not None and span is None:
        raise UsageFault("--deadline takes a length of time such as 14d or 48h.")
    phrases, subjects = phrase or [], subject or []
    # Asked for before anything is drawn on the terminal.
    given = typed(sum(text == "-" for text in (*phrases, *subjects)))
    phrases = [next(given) if text == "-" else text for text in phrases]
    subjects = [next(given) if text == "-" else text for text in subjects]
    with open_engine(manifest, quiet=as_json) as engine:
        wanted = wanted_of(id or (), phrases, subjects, engine.manifest.sites)
        if not apply:
            shown = engine.show(wanted, scope=scopes, decisions=decisions, expect=expect)
            outcome = shown.outcome
        else:
            shown = None
            outcome = engine.request(
                wanted,
                scope=scopes,
                reason=reason,
                asked_by=asked_by,
                decisions=decisions,
                expect=expect,
                deadline=span,
                apply=True,
            )
    if show and shown is not None:
        _print_excerpts(shown)
    print_outcome(outcome, as_json=as_json)
    end_with(outcome)


def pair(text: str) -> tuple[str, str]:
    """Return the two sides of KEY=VALUE.

    Raises:
        UsageFault: it is no such pair.
    """
    key, sign, value = text.partition("=")
    if not (key and sign and value):
        raise UsageFault("--scope takes KEY=VALUE, for example --scope project=atlas.")
    return key, value


def wanted_of(
    ids: Collection[str],
    phrases: Collection[str],
    subjects: Collection[str],
    sites: Collection[str],
) -> list[Wanted]:
    """Return what options name. An id may begin with its site: ``SITE:ID``."""
    from purge.plan.request import Wanted
    from purge.targets import TargetKind

    wanted = []
    for text in ids:
        site, colon, rest = text.partition(":")
        named = bool(colon) and site in sites
        wanted.append(Wanted(TargetKind.ID, rest if named else text, site if named else None))
    wanted.extend(Wanted(TargetKind.PHRASE, text) for text in phrases)
    wanted.extend(Wanted(TargetKind.SUBJECT, text) for text in subjects)
    return wanted


def typed(count: int) -> Iterator[str]:
    """Read as many values as there are ``-``: from standard input, or asked for without echo.

    Raises:
        UsageFault: there are not as many.
    """
    if count == 0:
        return
    if sys.stdin.isatty():
        for number in range(count):
            label = "What is to be forgotten" + (f" ({number + 1} of {count})" if count > 1 else "")
            yield str(typer.prompt(label, hide_input=True, err=True))
        return
    text = sys.stdin.read()
    # One value may run over several lines; several are one a line.
    values = [text.strip("\n")] if count == 1 else [line for line in text.splitlines() if line]
    if len(values) != count:
        raise UsageFault(
            f"Standard input holds {len(values)} lines for {count} values given as '-'."
        )
    yield from values


def _print_excerpts(shown: Shown) -> None:
    from rich.text import Text

    out = console()
    for excerpt in shown.excerpts:
        line = Text(f"{excerpt.site}", style="bold")
        line.append(f"  {excerpt.where}  {excerpt.role}", style="dim")
        out.print(line)
        for text in excerpt.texts:
            out.print(Text(f"    {text}"))
    if shown.excerpts:
        out.print()
