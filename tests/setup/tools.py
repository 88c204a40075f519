"""Programs that tests and demos need, fetched into ``.tools/`` where the machine has none.

Run as ``python tests/setup/tools.py git ...``: prints the path of each program, and fails with one
sentence if one cannot be had. Nothing is installed into the system and nothing needs root:
distribution packages are downloaded and unpacked below ``.tools/packages``, and a small script in
``.tools/bin`` starts the program from there. Standard library only, and syntax of Python 3.9,
since the bootstrap uses this before there is a newer one.
"""

# ruff: noqa: T201 -- a script that talks to whoever runs it

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / ".tools"


class CannotFetch(Exception):
    """Something cannot be had on this machine; the message says what to do."""


@dataclass(frozen=True)
class Recipe:
    """Where a program comes from.

    Args:
        packages: Debian packages that hold the program and what a minimal system lacks of its
            libraries.
        program: its path in them.
        environment: variables that tell it where it lies; ``{root}`` is the folder of the packages.
    """

    packages: tuple[str, ...]
    program: str
    environment: dict[str, str] = field(default_factory=dict)


RECIPES = {
    "git": Recipe(
        packages=("git", "libpcre2-8-0", "zlib1g"),
        program="usr/bin/git",
        environment={
            "GIT_EXEC_PATH": "{root}/usr/lib/git-core",
            "GIT_TEMPLATE_DIR": "{root}/usr/share/git-core/templates",
        },
    ),
}
"""The programs that can be fetched. A new one is one entry here."""


def ensure(program: str, tools: Path = TOOLS) -> Path:
    """Return the path of a program: the system's own, or one that was fetched.

    Raises:
        CannotFetch: the system has none and it cannot be fetched.
    """
    ours = tools / "bin" / program
    elsewhere = os.pathsep.join(
        folder
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if folder and Path(folder).resolve() != ours.parent.resolve()
    )
    found = shutil.which(program, path=elsewhere)
    if found:
        return Path(found)
    recipe = RECIPES.get(program)
    if recipe is None:
        raise CannotFetch(
            f"{program} is missing, and there is no recipe for it in tests/setup/tools.py."
        )
    root = tools / "packages" / program
    if not (ours.exists() and (root / recipe.program).exists()):
        fetch_packages(recipe.packages, root, tools)
        if not (root / recipe.program).exists():
            raise CannotFetch(f"{program} is missing, and the packages fetched do not hold it.")
        _write_starter(ours, root, recipe)
    return ours


def fetch_packages(packages: tuple[str, ...], into: Path, tools: Path = TOOLS) -> None:
    """Download Debian packages and unpack them in the folder ``into``, which is replaced.

    Uses the system's package lists, or lists of its own below ``tools`` where the system has none
    (as in fresh containers, where only root could fill them).

    Raises:
        CannotFetch: no apt here, no network, or no such package.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise CannotFetch(
            f"{packages[0]} is missing and this is no Debian or Ubuntu, so it cannot be fetched. "
            "Install it with the system's own package manager."
        )
    apt = tools / "apt"
    downloads = apt / "downloads"
    shutil.rmtree(downloads, ignore_errors=True)
    for folder in (apt / "lists" / "partial", apt / "cache" / "archives" / "partial", downloads):
        folder.mkdir(parents=True, exist_ok=True)
    own_lists = [
        "-o", f"Dir::State::lists={apt / 'lists'}",
        "-o", f"Dir::Cache={apt / 'cache'}",
        "-o", "Debug::NoLocking=1",
        # As root, apt would hand the work to a user who may not write here.
        "-o", f"APT::Sandbox::User={_user()}",
    ]  # fmt: skip
    said = ""
    for options, refresh in (([*own_lists[2:]], False), (own_lists, True)):
        if refresh:
            print(f"  Fetching package lists for {packages[0]} ...", flush=True)
            said = _run(["apt-get", *options, "update", "-qq"], cwd=downloads)
        said = _run(["apt-get", *options, "download", "-qq", *packages], cwd=downloads) or said
        archives = sorted(downloads.glob("*.deb"))
        if len(archives) >= len(packages):
            break
    else:
        reason = said.strip().splitlines()
        raise CannotFetch(
            f"{packages[0]} is missing and could not be downloaded"
            + (f" ({reason[-1]})" if reason else "")
            + ". Check the network and the system's package sources, or install it yourself."
        )
    fresh = into.with_name(into.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for archive in archives:
        failed = _run(["dpkg", "-x", str(archive), str(fresh)], cwd=downloads)
        if failed:
            raise CannotFetch(f"{archive.name} could not be unpacked ({failed.strip()}).")
    shutil.rmtree(into, ignore_errors=True)
    fresh.rename(into)
    shutil.rmtree(downloads, ignore_errors=True)


def _write_starter(path: Path, root: Path, recipe: Recipe) -> None:
    libraries = [str(folder) for folder in sorted(root.glob("usr/lib/*-linux-gnu*"))]
    libraries += [str(folder) for folder in sorted(root.glob("lib/*-linux-gnu*"))]
    lines = ["#!/bin/sh"]
    for name, value in recipe.environment.items():
        lines.append(f"export {name}={shlex.quote(value.replace('{root}', str(root)))}")
    if libraries:
        lines.append(f"export LD_LIBRARY_PATH={shlex.quote(os.pathsep.join(libraries))}")
    lines.append(f'exec {shlex.quote(str(root / recipe.program))} "$@"')
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")
    fresh.chmod(0o755)
    fresh.replace(path)


def _run(command: list[str], cwd: Path) -> str:
    """Run a program and return nothing if it succeeded, else what it said."""
    done = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        check=False,
    )
    if done.returncode == 0:
        return ""
    return done.stdout.decode(errors="replace") or f"{command[0]} failed"


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return "root"


def main(names: list[str]) -> int:
    """Make sure of every program named, and print where each is."""
    for name in names or sorted(RECIPES):
        try:
            print(f"{name}: {ensure(name)}", flush=True)
        except CannotFetch as reason:
            print(reason, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
