"""``purge schedule``: prints what runs the nightly sweep. It installs nothing."""

from __future__ import annotations

import re
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from purge.cli.common import EPILOG, JsonOption, ManifestOption, open_engine, print_json
from purge.errors import UsageFault


class Form(StrEnum):
    """What is printed."""

    SYSTEMD = "systemd"
    CRON = "cron"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schedule", epilog=EPILOG)(schedule)


def schedule(
    form: Annotated[
        Form, typer.Option("--as", help="systemd units, or a line for crontab.")
    ] = Form.SYSTEMD,
    at: Annotated[
        str, typer.Option("--at", metavar="HH:MM", help="When, in the manifest's time zone.")
    ] = "04:30",
    after: Annotated[
        str | None,
        typer.Option(
            "--after",
            metavar="UNIT",
            show_default=False,
            help="The systemd service that makes the snapshot; the sweep runs after it, not at a "
            "time.",
        ),
    ] = None,
    on_failure: Annotated[
        str,
        typer.Option(
            "--on-failure",
            metavar="COMMAND",
            help="What to run when a sweep fails, is refused, or leaves something owed.",
        ),
    ] = "logger -p user.err 'purge: the nightly sweep needs a look'",
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print systemd units or a crontab line that run 'purge sweep --apply' every night."""
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", at):
        raise UsageFault("--at takes a time of day such as 04:30.")
    if after is not None and form is Form.CRON:
        raise UsageFault("--after names a systemd service; for cron give a time with --at.")
    with open_engine(manifest, quiet=True) as engine:
        path, zone = engine.manifest.path, engine.manifest.timezone.key
        name = engine.manifest.name
    if form is Form.CRON:
        files = {"crontab": cron_line(path, zone, at, on_failure)}
    else:
        files = systemd_units(path, name, zone, at, after, on_failure)
    if as_json:
        print_json({"schema": "purge/schedule/1", "files": files})
        return
    for file, text in files.items():
        typer.echo(f"# --- {file}\n{text}")


def cron_line(path: Path, zone: str, at: str, on_failure: str) -> str:
    """Return a crontab entry."""
    hour, minute = at.split(":")
    # In a crontab % ends the command.
    command = " ".join(map(shlex.quote, _command(path))).replace("%", r"\%")
    hook = on_failure.replace("%", r"\%")
    return f"CRON_TZ={zone}\n{int(minute)} {int(hour)} * * *  {command} || {hook}\n"


def systemd_units(
    path: Path, name: str, zone: str, at: str, after: str | None, on_failure: str
) -> dict[str, str]:
    """Return the unit files by name."""
    stem = "purge-sweep-" + (re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-") or "memory")
    described = _specifiers(name)
    order = f"After={after}\n" if after else ""
    units = {
        f"{stem}.service": (
            "[Unit]\n"
            f"Description=Nightly purge sweep of {described}\n"
            f"OnFailure={stem}-failed.service\n"
            f"{order}"
            "\n[Service]\n"
            "Type=oneshot\n"
            f"WorkingDirectory={_specifiers(str(path.parent))}\n"
            f"ExecStart={' '.join(map(_quoted, _command(path)))}\n"
            "# Secrets that the manifest takes from the environment:\n"
            f"# EnvironmentFile=/etc/purge/{stem}.env\n"
            "UMask=0077\n"
            "NoNewPrivileges=yes\n"
        ),
        f"{stem}-failed.service": (
            "[Unit]\n"
            f"Description=Tell that the purge sweep of {described} needs a look\n"
            "\n[Service]\n"
            "Type=oneshot\n"
            f"ExecStart=/bin/sh -c {_quoted(on_failure)}\n"
        ),
    }
    if after:
        units[f"{after}.d/purge.conf"] = f"[Unit]\nOnSuccess={stem}.service\n"
        return units
    units[f"{stem}.timer"] = (
        "[Unit]\n"
        f"Description=Nightly purge sweep of {described}\n"
        "\n[Timer]\n"
        f"OnCalendar=*-*-* {at}:00 {zone}\n"
        "Persistent=true\n"
        "\n[Install]\n"
        "WantedBy=timers.target\n"
    )
    return units


def _command(path: Path) -> list[str]:
    program = Path(sys.executable).parent / "purge"
    return [str(program), "sweep", "--apply", "--log", "text", "--manifest", str(path)]


def _specifiers(text: str) -> str:
    """Keep systemd from reading a % as one of its own."""
    return text.replace("%", "%%").replace("\n", " ")


def _quoted(text: str) -> str:
    """Quote one argument as systemd.syntax has it."""
    plain = _specifiers(text).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{plain}"' if re.search(r"[^A-Za-z0-9_./:=%+-]", plain) or not plain else plain
