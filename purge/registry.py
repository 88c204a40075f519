"""Adapters by name: the built-in table it is given, and what other distributions register.

This module names no adapter and imports no driver. An adapter's module is imported when its name
is asked for; the entry points of other distributions are looked at only when a name is not built
in, or for a list of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from importlib.util import find_spec
from inspect import isabstract
from typing import TYPE_CHECKING, Any, Final

from purge.adapter import Adapter, AdapterInfo, Site
from purge.errors import MissingDriver, UsageFault
from purge.shapes import nearest, validate

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "purge.adapters"
"""The entry-point group under which other distributions register their adapters."""
DISTRIBUTION: Final = "purge-orchestrator"
"""The distribution that brings the built-in adapters and their extras."""


class UnknownAdapter(UsageFault):
    """No adapter has this name; the message gives the nearest one."""

    code = "unknown-adapter"


class BadAdapter(UsageFault):
    """What is registered under a name cannot be used: not an adapter, incomplete, or twice."""

    code = "bad-adapter"


@dataclass(frozen=True, slots=True)
class _Registered:
    """Where an adapter is to be found, and which distribution brought it."""

    target: str
    distribution: str


class Registry:
    """The adapters that can be named in a manifest.

    Args:
        builtin: name to ``module:Class``.
    """

    def __init__(self, builtin: Mapping[str, str]) -> None:
        self._builtin = dict(builtin)
        self._others: dict[str, list[_Registered]] | None = None
        self._loaded: dict[str, type[Adapter[Any]]] = {}

    def names(self) -> tuple[str, ...]:
        """Return the names of all adapters, built-in ones first.

        Raises:
            BadAdapter: a name is taken twice.
        """
        others = self._registered_elsewhere()
        for name in others:
            self._locate(name, listing=True)
        return (*sorted(self._builtin), *sorted(others))

    def load(self, name: str) -> type[Adapter[Any]]:
        """Return the class of an adapter, without importing its driver.

        Raises:
            UnknownAdapter: there is none of that name.
            BadAdapter: what is registered is not a complete adapter, or two distributions
                register the name.
        """
        if name not in self._loaded:
            self._loaded[name] = self._import(name, self._locate(name))
        return self._loaded[name]

    def require(self, name: str) -> type[Adapter[Any]]:
        """Return the class of an adapter whose driver is installed. The driver is not imported.

        Raises:
            MissingDriver: the driver is not installed; the message says what to install.
            UnknownAdapter, BadAdapter: as for :meth:`load`.
        """
        adapter = self.load(name)
        missing = [module for module in adapter.info.modules if not _is_installed(module)]
        if missing:
            extra = adapter.info.extra
            wanted = f"{self._locate(name).distribution}[{extra}]" if extra else " ".join(missing)
            raise MissingDriver(
                f"The driver of the adapter '{name}' is not installed ({', '.join(missing)}). "
                f"Install it: pip install '{wanted}'"
            )
        return adapter

    def settings(self, name: str, raw: Mapping[str, object], also: Iterable[str] = ()) -> object:
        """Return an adapter's ``Settings`` made from a site's own keys.

        Args:
            name: the adapter.
            raw: the site's keys without those that every site has.
            also: further known keys, for suggestions.

        Raises:
            purge.shapes.ShapeFault: with everything that is wrong, each with its path.
            UnknownAdapter, BadAdapter: as for :meth:`load`.
        """
        checked: object = validate(self.load(name).Settings, raw, also)
        return checked

    def make(self, name: str, site: Site, settings: object) -> Adapter[Any]:
        """Return a new adapter for one site and one phase of a run.

        Raises:
            MissingDriver, UnknownAdapter, BadAdapter: as for :meth:`require`.
        """
        return self.require(name)(site, settings)

    def _locate(self, name: str, *, listing: bool = False) -> _Registered:
        if name in self._builtin and not listing:
            return _Registered(self._builtin[name], DISTRIBUTION)
        found = list(self._registered_elsewhere().get(name, ()))
        if name in self._builtin:
            found.insert(0, _Registered(self._builtin[name], DISTRIBUTION))
        if len(found) > 1:
            owners = ", ".join(sorted({other.distribution for other in found}))
            raise BadAdapter(
                f"The adapter name '{name}' is registered more than once ({owners}). "
                "Uninstall all but one of them."
            )
        if not found:
            known = (*self._builtin, *self._registered_elsewhere())
            hint = nearest(name, known) or f" Known: {', '.join(sorted(known)) or 'none'}."
            raise UnknownAdapter(f"There is no adapter '{name}'.{hint}")
        return found[0]

    def _registered_elsewhere(self) -> Mapping[str, list[_Registered]]:
        if self._others is None:
            self._others = {}
            for point in _entry_points():
                brought_by = point.dist.name if point.dist else "an unnamed distribution"
                registered = _Registered(point.value, brought_by)
                self._others.setdefault(point.name, []).append(registered)
        return self._others

    def _import(self, name: str, registered: _Registered) -> type[Adapter[Any]]:
        said = f"The adapter '{name}' of {registered.distribution} ({registered.target})"
        module_name, _, class_name = registered.target.partition(":")
        try:
            found: object = getattr(import_module(module_name), class_name)
        except (ImportError, AttributeError, SyntaxError, ValueError) as error:
            raise BadAdapter(
                f"{said} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        if not (isinstance(found, type) and issubclass(found, Adapter)):
            raise BadAdapter(f"{said} is not a subclass of purge.adapter.Adapter.")
        if isabstract(found):
            lacking = ", ".join(sorted(found.__abstractmethods__))
            raise BadAdapter(f"{said} is incomplete; it lacks: {lacking}.")
        if not isinstance(getattr(found, "info", None), AdapterInfo):
            raise BadAdapter(f"{said} has no 'info'.")
        if found.info.name != name:
            raise BadAdapter(f"{said} calls itself '{found.info.name}'.")
        if not is_dataclass(getattr(found, "Settings", None)):
            raise BadAdapter(f"{said} has no 'Settings' that is a dataclass.")
        return found


def _entry_points() -> Iterator[EntryPoint]:
    # Reading the metadata of everything that is installed costs more than all the rest here.
    from importlib.metadata import entry_points

    yield from entry_points(group=GROUP)


def _is_installed(module: str) -> bool:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        # A parent package is missing, or a module of that name without a spec is loaded.
        return False
    # Without an origin it is any folder of that name that happens to be in the path.
    return spec is not None and spec.origin is not None
