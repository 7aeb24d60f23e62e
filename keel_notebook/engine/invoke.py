"""Runs the function of a durable call: once, again after a failure, and within its time (DESIGN 3.2; K40).

One idempotency key holds for all attempts of one logical call. The person's own exception is what they get, with a
note that says why it was not tried again; keel never wraps it.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from types import FunctionType
from typing import Any

from keel_notebook.core.attempts import GiveUp
from keel_notebook.core.model import Effect
from keel_notebook.engine import scope
from keel_notebook.engine.callparts import CallOptions, Claim, Given, Going
from keel_notebook.engine.callpolicy import next_try, retry_of
from keel_notebook.engine.calls import Calls
from keel_notebook.engine.plain import ATOMS
from keel_notebook.engine.tracebacks import note
from keel_notebook.errors import CallTimeoutError


def run(  # noqa: PLR0913, PLR0917 - what is called, with what, and how
    calls: Calls,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: CallOptions,
    key: Any = None,
) -> Any:
    """Carry one call out and give its value; an awaitable where the function is, or gives, one."""
    __tracebackhide__ = True
    if asynchronous(function):
        return run_async(calls, calls.claim(function, args, kwargs, options, key))
    go = calls.enter(function, args, kwargs, options, key)
    if isinstance(go, Given):
        return _ready(go.value) if go.awaited else go.value
    claim = go.claim
    try:
        if options.retries or options.timeout_s is not None:
            value = _attempts(calls, go)
        else:
            token = scope.push(claim)
            try:
                value = claim.function(*claim.args, **claim.kwargs)
            finally:
                scope.pop(token)
    except BaseException as error:  # noqa: BLE001 - raised again, unless failures are kept
        return _failed(calls, go, error)
    if type(value) not in ATOMS and inspect.isawaitable(value):
        go.awaited = True
        return _finish_async(calls, go, value)
    return calls.finish(go, value)


def asynchronous(function: Any) -> bool:
    """Whether calling it gives a coroutine. The flag of its code is all that there is to plain functions."""
    if type(function) is FunctionType:
        return bool(function.__code__.co_flags & inspect.CO_COROUTINE)
    return inspect.iscoroutinefunction(function)


async def run_async(calls: Calls, claim: Claim) -> Any:
    """Carry one call out whose function is asynchronous, or may be."""
    __tracebackhide__ = True
    go = calls.begin(claim)
    if isinstance(go, Given):
        return go.value
    go.awaited = asynchronous(claim.function)
    try:
        value = await _attempts_async(calls, go)
    except BaseException as error:  # noqa: BLE001 - raised again, unless failures are kept
        return _failed(calls, go, error)
    return calls.finish(go, value)


async def _ready(value: Any) -> Any:
    return value


async def _finish_async(calls: Calls, go: Going, value: Awaitable[Any]) -> Any:
    __tracebackhide__ = True
    try:
        with scope.within(go.claim):
            result = await asyncio.wait_for(value, go.claim.options.timeout_s)
    except BaseException as error:  # noqa: BLE001 - raised again, unless failures are kept
        return _failed(calls, go, error)
    return calls.finish(go, result)


def _failed(calls: Calls, go: Going, error: BaseException) -> Any:
    __tracebackhide__ = True
    claim = go.claim
    calls.fail(go, error)
    if claim.options.on_error == "keep" and isinstance(error, Exception):
        return calls.kept(go, error)
    if isinstance(error, Exception):
        named(error, claim)
    raise error


def named(error: BaseException, claim: Claim, more: str = "") -> None:
    """Note on an exception which durable call it came from (C74); ``more``: which of many it was."""
    note(error, f"keel: in durable call {claim.place.call}, key {claim.place.key}{more}")


def _attempts(calls: Calls, go: Going) -> Any:
    __tracebackhide__ = True
    while True:
        try:
            return in_time(go.claim, go.claim.options.timeout_s)
        except Exception as error:  # noqa: BLE001 - raised again at the end
            calls.parts.sleep(_pause(calls, go, error))


async def _attempts_async(calls: Calls, go: Going) -> Any:
    __tracebackhide__ = True
    claim = go.claim
    while True:
        try:
            with scope.within(claim):
                value = claim.function(*claim.args, **claim.kwargs)
                if inspect.isawaitable(value):
                    go.awaited = True
                    async with asyncio.timeout(claim.options.timeout_s):
                        value = await value
                return value
        except Exception as error:  # noqa: BLE001 - raised again at the end
            await asyncio.sleep(_pause(calls, go, _said(error, claim)))


def _said(error: Exception, claim: Claim) -> Exception:
    timeout = claim.options.timeout_s
    if isinstance(error, TimeoutError) and timeout is not None:
        return CallTimeoutError(what=claim.place.call, timeout=f"{timeout:g} s")
    return error


def _pause(calls: Calls, go: Going, error: Exception) -> float:
    """Seconds until the next attempt; raises the error where there is none."""
    __tracebackhide__ = True
    claim, options = go.claim, go.claim.options
    repeatable = options.effect is not Effect.EXACTLY_ONCE or claim.keyed
    answer = next_try(retry_of(options.retries), go.attempts, error, repeatable=repeatable, chance=calls.parts.chance)
    if isinstance(answer, GiveUp):
        if options.retries:
            error.add_note(f"KEEL-{answer.code}: {_WHY[answer.code]} ({claim.place.call}, attempt {go.attempts})")
        raise error
    go.attempts += 1
    return answer


_WHY = {
    "E010": "all attempts failed",
    "E014": "not tried again: it may have happened; give it a key= that the other side honours",
    "E015": "not tried again: this error stays",
}


def in_time(claim: Claim, timeout_s: float | None) -> Any:
    """Run the function once. With a time limit it runs in a thread of its own, which is left behind when it is over.

    Raises CallTimeoutError (E011): what the function does may still happen.
    """
    __tracebackhide__ = True

    def go() -> Any:
        __tracebackhide__ = True
        with scope.within(claim):
            return claim.function(*claim.args, **claim.kwargs)

    if timeout_s is None:
        return go()
    outcome: list[Callable[[], Any]] = []
    context = contextvars.copy_context()
    done = threading.Event()

    def work() -> None:
        __tracebackhide__ = True
        try:
            value = context.run(go)
            outcome.append(lambda: value)
        except BaseException as error:  # noqa: BLE001 - handed over to the thread that waits
            outcome.append(functools.partial(_raise, error))
        done.set()

    threading.Thread(target=work, name=f"keel-{claim.place.call}", daemon=True).start()
    if not done.wait(timeout_s):
        raise CallTimeoutError(what=claim.place.call, timeout=f"{timeout_s:g} s")
    return outcome[0]()


def _raise(error: BaseException) -> Any:
    __tracebackhide__ = True
    raise error
