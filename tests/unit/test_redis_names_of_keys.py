"""Keys that are no UTF-8: how they are named, and that the look at files finds their bytes."""

from __future__ import annotations

import pytest

from purge_adapters._redis_keys import named, unnamed
from purge_adapters._redis_needles import forms_of


@pytest.mark.parametrize(
    "key", [b"answer:\xff\x00", b"\x80\xfe middle \xc3", b"answer:caf\xc3\xa9"]
)
def test_a_name_leads_back_to_the_key(key: bytes) -> None:
    assert unnamed(named(key)) == key


def test_the_bytes_of_a_key_are_a_form_of_its_name() -> None:
    key = b"answer:\xff\x00"
    assert key in forms_of(named(key))
