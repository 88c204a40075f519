"""What errors of the operating system mean to a report."""

from __future__ import annotations

import errno

import pytest

from purge.adapter import ProblemCode
from purge.errors import Permanent, StoreError, Transient
from purge_adapters._files import os_problem


@pytest.mark.parametrize(
    ("number", "kind", "problem"),
    [
        (errno.ENOENT, Permanent, ProblemCode.UNREACHABLE),
        (errno.ENOTDIR, Permanent, ProblemCode.UNREACHABLE),
        (errno.EACCES, Permanent, ProblemCode.NO_PERMISSION),
        (errno.EPERM, Permanent, ProblemCode.NO_PERMISSION),
        (errno.EROFS, Permanent, ProblemCode.NO_PERMISSION),
        (errno.EIO, Permanent, ProblemCode.CORRUPT),
        (errno.ELOOP, Permanent, ProblemCode.UNSUPPORTED),
        (errno.ENOSPC, Permanent, ProblemCode.UNSUPPORTED),
        (errno.EMFILE, Transient, ProblemCode.BUSY),
        (errno.EAGAIN, Transient, ProblemCode.BUSY),
        (errno.ESTALE, Transient, ProblemCode.UNREACHABLE),
        (errno.ECHILD, Permanent, ProblemCode.UNREACHABLE),
    ],
)
def test_an_error_has_a_kind_and_a_problem(
    number: int, kind: type[StoreError], problem: ProblemCode
) -> None:
    found = os_problem(OSError(number, "words of the system", "/home/someone/secret"), "logs/a")
    assert type(found) is kind
    assert found.problem == problem
    assert str(found).startswith("logs/a ")


def test_the_path_of_an_error_is_not_shown() -> None:
    found = os_problem(OSError(errno.EACCES, "words", "/home/someone/secret"))
    assert "secret" not in str(found)
    assert "someone" not in repr(found)


def test_an_error_without_a_number_has_a_meaning_too() -> None:
    assert "OSError" in str(os_problem(OSError("something")))
