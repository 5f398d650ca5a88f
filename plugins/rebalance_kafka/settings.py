"""Settings by Kafka's names, as a coordinator or a client has them."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec

from coordinator_core.errors import InputError

_Config = TypeVar("_Config", bound=msgspec.Struct)


def configured(kind: type[_Config], given: Mapping[str, Any]) -> _Config:
    """A configuration of that kind. Raises InputError for names it has not and values it cannot have."""
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else f": {', '.join(sorted(known))}"
            raise InputError("settings", repr(name), f"a setting by Kafka's name{hint}")
    try:
        return msgspec.convert(dict(given), kind)
    except msgspec.ValidationError as wrong:
        raise InputError("settings", str(wrong), "values that the settings can have") from None
