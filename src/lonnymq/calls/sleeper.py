"""Registration of sleeping workers, so that producers notify only while there are any."""

from lonnymq.calls.statement import Call, call, function, nothing

REGISTER = function("sleeper_register", p_worker="text", p_for_ms="bigint")
CLEAR = function("sleeper_clear", p_worker="text")


def register(worker: str, for_ms: int) -> Call[None]:
    return call(REGISTER, worker, for_ms, decode=nothing)


def clear(worker: str) -> Call[None]:
    return call(CLEAR, worker, decode=nothing)
