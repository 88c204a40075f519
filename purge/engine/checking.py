"""What is checked before anything is looked for: names in a request, and where the ledger lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from purge.adapter import Statement
from purge.engine.sites import Sites
from purge.errors import UsageFault
from purge.manifest import Manifest
from purge.plan.request import Request
from purge.targets import TargetKind


@dataclass(frozen=True, slots=True)
class SiteCheck:
    """What ``purge check`` says of one site."""

    site: str
    adapter: str
    statements: tuple[Statement, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found that would make a run go wrong."""
        return all(statement.ok for statement in self.statements)


def backed_up(sites: Sites, name: str) -> Iterator[Statement]:
    """Refuse a ledger or key that gets into backups: a destroyed key would live on there."""
    manifest = sites.manifest
    own = {"ledger": manifest.ledger, "keys": manifest.keys, "key file": manifest.key_file}
    for covered in manifest.sites[name].covers:
        for what, path in own.items():
            if any(path.resolve().is_relative_to(held) for held in sites.footprint(covered)):
                yield Statement(
                    f"The {what} lies under '{covered}', which this site backs up: keys that "
                    "are destroyed would live on in backups. Move it with 'ledger:' in the "
                    "manifest.",
                    ok=False,
                )


def check_names(manifest: Manifest, asked: Request) -> None:
    """Refuse what no site of the manifest can answer.

    Raises:
        UsageFault: a site, a scope or a subject that the manifest does not know.
    """
    for wanted in asked.wanted:
        if wanted.site is not None and wanted.site not in manifest.sites:
            known = ", ".join(manifest.sites)
            raise UsageFault(f"There is no site '{wanted.site}'. The manifest has: {known}.")
    for key in asked.scope:
        if not any(key in entry.scope for entry in manifest.sites.values()):
            mapped = sorted({k for e in manifest.sites.values() for k in e.scope})
            raise UsageFault(
                f"No site of the manifest maps the scope '{key}'. "
                f"Mapped: {', '.join(mapped) or 'none'}."
            )
    if any(w.kind is TargetKind.SUBJECT for w in asked.wanted) and not any(
        entry.subject for entry in manifest.sites.values()
    ):
        raise UsageFault(
            "No site of the manifest maps a 'subject' field, so that nobody can be found "
            "by --subject. Map one, or name ids or phrases."
        )
