"""Showing settings without the secrets in them. This module reads nothing and never raises."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from purge.manifest.model import SiteEntry
from purge.manifest.secret import Secret

HIDDEN: Final = "***"
_SECRET_NAME: Final = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|api_?key|access_?key|private_?key|auth",
    re.IGNORECASE,
)
_NOT_SECRET: Final = re.compile(r"(_file|_path|_env|_command|_id)$", re.IGNORECASE)
_USER_INFO: Final = re.compile(r"(?<=://)([^:@/\s]*):(\S*)@")
"""User and password. Greedy on purpose: a password may hold ``/`` or ``@``, and a host that is
hidden too much does no harm."""
_FROM_ENVIRONMENT: Final = re.compile(r"\$\{\w+\}")
_QUERY: Final = re.compile(
    r"([?&;](?:[\w.-]*(?:passw(?:or)?d|secret|token|key|signature|auth)[\w.-]*)=)([^&;#\s]*)",
    re.IGNORECASE,
)


def redacted(entry: SiteEntry) -> dict[str, object]:
    """Return a site's adapter settings as they may be shown."""
    return {name: redact(name, value) for name, value in entry.settings.items()}


def redact(name: str, value: object) -> object:
    """Return ``value`` of the key ``name`` as it may be shown.

    What came from the environment shows as it stands in the manifest (``${NAME}``). The rest is
    shown, except the password in a URL and every value of a key that is named like a secret.
    """
    is_secret = _names_a_secret(name)
    if isinstance(value, Secret):
        return _hide_between(value.template) if is_secret else _hide_in_url(value.template)
    if isinstance(value, str):
        return HIDDEN if is_secret and value else _hide_in_url(value)
    if isinstance(value, Mapping):
        return {key: redact(name if is_secret else str(key), inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact(name, inner) for inner in value]
    if value is not None and not isinstance(value, bool) and is_secret:
        return HIDDEN
    return value


def _names_a_secret(name: str) -> bool:
    return bool(_SECRET_NAME.search(name)) and not _NOT_SECRET.search(name)


def _hide_between(template: str) -> str:
    """Keep the names of variables and hide the literal parts around them."""
    parts = _FROM_ENVIRONMENT.split(template)
    names = [*_FROM_ENVIRONMENT.findall(template), ""]
    return "".join((HIDDEN if part else "") + name for part, name in zip(parts, names, strict=True))


def _hide_in_url(text: str) -> str:
    def hide_password(found: re.Match[str]) -> str:
        user, password = found[1], found[2]
        return f"{user}:{_hide_between(password)}@"

    def hide_value(found: re.Match[str]) -> str:
        return found[1] + _hide_between(found[2])

    text = _USER_INFO.sub(hide_password, text)
    return _QUERY.sub(hide_value, text)
