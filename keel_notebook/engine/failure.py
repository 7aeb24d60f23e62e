"""A failure that was kept instead of raised (``on_error="keep"``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct

if TYPE_CHECKING:
    from keel_notebook.engine.callparts import Claim


class Failure(Struct, frozen=True):
    """What stands in the place of a result that could not be had. It is false, so that ``filter(None, …)`` drops it.

    A kept failure is never replayed as a success: the next run of the cell tries the call again.
    """

    call: str
    key: str
    type: str
    error: Exception

    @classmethod
    def of(cls, error: Exception, claim: Claim) -> Failure:
        """The failure of a call."""
        return cls(claim.place.call, claim.place.key, type(error).__qualname__, error)

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<keel.Failure {self.call} {self.key}: {self.type}>"

    def reraise(self) -> NoReturn:
        """Raise the error after all."""
        raise self.error
