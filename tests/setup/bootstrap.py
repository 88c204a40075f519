"""Make the virtual environment that everything else runs in: ``python3 bootstrap.py FOLDER``.

For a fresh Debian or Ubuntu, without root: the system's Python may be too old to be used or lack
``ensurepip`` (Debian ships it apart, as python3-venv). Run again, it repairs what is half made and
changes nothing that is in order. Standard library only, and syntax of Python 3.9, so that an old
Python can say that it is old.
"""

# ruff: noqa: T201 -- a script that talks to whoever runs it

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import tools  # type: ignore[import-not-found]  # beside this script, which is run by its path

OLDEST = (3, 11)
CANDIDATES = ("python3", "python3.13", "python3.12", "python3.11", "python3.14")
PIP = "25.1"
"""The first pip that knows dependency groups."""
PROJECT = Path(__file__).resolve().parents[2]
MISLEADING = (
    "PYTHONHOME",
    "PYTHONPATH",
    "PIP_USER",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_REQUIRE_VIRTUALENV",
)


class Stop(Exception):
    """It cannot be done; the message says why and what to do."""


def main(arguments: list[str]) -> int:
    """Make or mend the environment, and say what is being done."""
    if len(arguments) != 1:
        print("Usage: python3 tests/setup/bootstrap.py FOLDER", file=sys.stderr)
        return 2
    for name in MISLEADING:
        os.environ.pop(name, None)
    folder = Path(arguments[0]).absolute()
    try:
        make_environment(folder)
        install_project(folder)
    except (Stop, tools.CannotFetch) as reason:
        print(f"Cannot set up {folder}: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; run it again to go on.", file=sys.stderr)
        return 1
    say("Ready.")
    return 0


def say(text: str) -> None:
    print(f"  {text}", flush=True)


def make_environment(folder: Path) -> None:
    """Make sure that ``folder`` is a virtual environment with a Python that is new enough and a
    pip that works."""
    if is_sound(folder):
        say(f"The environment in {folder.name} is there.")
        return
    python = find_python()
    if folder.exists():
        holds = list(folder.iterdir()) if folder.is_dir() else [folder]
        if holds and not (folder / "pyvenv.cfg").exists() and not (folder / "bin").is_dir():
            raise Stop("it exists and is no virtual environment; move it away")
        say(f"The environment in {folder.name} is incomplete; making it anew.")
        shutil.rmtree(folder)
    say(f"Making an environment in {folder.name} with {python}.")
    has_ensurepip = succeeds([python, "-c", "import ensurepip, venv; ensurepip.version()"])
    if has_ensurepip:
        run([python, "-m", "venv", str(folder)], "the environment could not be made")
    else:
        if not succeeds([python, "-c", "import venv"]):
            raise Stop(f"{python} has no 'venv' module; install python3-venv")
        run(
            [python, "-m", "venv", "--without-pip", str(folder)],
            "the environment could not be made",
        )
        wheel = find_pip_wheel()
        say(f"This Python brings no pip; using {wheel.name}.")
        # A wheel is a zip file that Python can run from.
        run(
            [
                str(folder / "bin" / "python"),
                f"{wheel}/pip",
                "install",
                "-q",
                "--no-index",
                str(wheel),
            ],
            "pip could not be put into the environment",
        )
    if not is_sound(folder):
        raise Stop("the environment was made and does not work")


def is_sound(folder: Path) -> bool:
    """Whether the environment is complete, new enough, and was made where it lies (the scripts in
    an environment that was moved or copied start the old one)."""
    python = folder / "bin" / "python"
    script = folder / "bin" / "pip"
    check = f"import pip._internal, sys; sys.exit(sys.version_info < {OLDEST!r})"
    if not succeeds([str(python), "-c", check]):
        return False
    try:
        return str(folder) in script.read_text(errors="replace").split("import", 1)[0]
    except OSError:
        return False


def find_python() -> str:
    """Return a Python that is new enough: the one this runs on, or another on the path."""
    if sys.version_info >= OLDEST:
        return sys.executable
    for name in CANDIDATES:
        path = shutil.which(name)
        if path and succeeds([path, "-c", f"import sys; sys.exit(sys.version_info < {OLDEST!r})"]):
            return path
    wanted = ".".join(map(str, OLDEST))
    raise Stop(
        f"Python {wanted} or newer is needed, and this is Python {sys.version.split()[0]}. "
        f"Install one (on Ubuntu 22.04: apt-get install python{wanted} python{wanted}-venv), "
        "or name it: make PYTHON=/path/to/python3"
    )


def find_pip_wheel() -> Path:
    """Return pip as a wheel: the system's, or one from the distribution's package."""
    fetched = tools.TOOLS / "packages" / "python3-pip-whl"
    found = newest_wheel(Path("/usr/share/python-wheels")) or newest_wheel(fetched)
    if found is None:
        say("This Python brings no pip; fetching the package python3-pip-whl (no root needed).")
        try:
            tools.fetch_packages(("python3-pip-whl",), fetched)
        except tools.CannotFetch as reason:
            raise Stop(f"{reason} For Python itself: apt-get install python3-venv") from None
        found = newest_wheel(fetched)
    if found is None:
        raise Stop("the package python3-pip-whl holds no pip; install python3-venv")
    return found


def newest_wheel(folder: Path) -> Path | None:
    return max(folder.glob("**/pip-*.whl"), default=None, key=lambda wheel: wheel.stat().st_mtime)


def install_project(folder: Path) -> None:
    """Install the project and everything for working on it."""
    pip = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "-q",
    ]
    least = tuple(int(part) for part in PIP.split("."))
    knows_groups = (
        "import pip, sys; version = tuple(int(part) for part in pip.__version__.split('.')[:2]); "
        f"sys.exit(version < {least!r})"
    )
    if not succeeds([pip[0], "-c", knows_groups]):
        say("Upgrading pip.")
        run([*pip, "install", "--upgrade", f"pip>={PIP}"], "pip could not be upgraded")
    say("Installing purge and its tools (the first time takes a minute or two).")
    run(
        [
            *pip,
            "install",
            "--editable",
            str(PROJECT),
            "--group",
            f"{PROJECT / 'pyproject.toml'}:dev",
        ],
        "the project could not be installed; what pip said stands above",
    )


def succeeds(command: list[str]) -> bool:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


def run(command: list[str], otherwise: str) -> None:
    """Run a program quietly; if it fails, show the end of what it said and stop with the sentence
    ``otherwise``."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    except OSError as error:
        raise Stop(f"{otherwise} ({error.strerror})") from None
    if done.returncode != 0:
        said = done.stdout.decode(errors="replace").splitlines()
        print(*(f"    {line}" for line in said[-25:]), sep="\n", file=sys.stderr)
        raise Stop(otherwise)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
