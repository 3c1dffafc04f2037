"""Calls of tasks that run side by side, and a callback that receives their results."""

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from lonnymq.calls import argument
from lonnymq.calls.group import MAX_MEMBERS
from lonnymq.calls.result import MAX_KEEP
from lonnymq.errors import InvalidArgument, invalid, invalid_kind
from lonnymq.model import NewMessage
from lonnymq.tasks.chains import Chain
from lonnymq.tasks.prepared_call import EnqueueOptions, GroupPart, Payload, PreparedCall
from lonnymq.tasks.task import Task

Q = ParamSpec("Q")
Returned = TypeVar("Returned")
Next = TypeVar("Next")


@dataclass(frozen=True)
class PreparedGroup(PreparedCall[Returned]):
    """Enqueues the members of a group together with their callback."""

    members: tuple[Chain[Any] | NewMessage, ...]
    deadline: timedelta | float

    def message(self, channel: str) -> NewMessage:
        raise InvalidArgument(
            "a chain that begins with a group is not one message: enqueue it, and not in another group"
        )

    def _send(self, queue: Any, channel: str) -> Any:
        return queue.enqueue_group(
            [one if isinstance(one, NewMessage) else one.message(channel) for one in self.members],
            self._message(channel),
            deadline=self.deadline,
            raise_if_dropped=self.options.raise_if_dropped,
            connection=self.options.connection,
        )


@dataclass(frozen=True)
class Group(Generic[Returned]):
    """Calls that run side by side; each returns a `Returned`. It is enqueued with the callback of `then`."""

    _members: tuple[Chain[Returned] | NewMessage, ...]
    _deadline: timedelta | float

    @overload
    def then(
        self: "Group[None]",
        task: "Task[Q, Coroutine[Any, Any, Next]]",
        /,
        *arguments: Q.args,
        **options: Q.kwargs,
    ) -> Chain[Next]: ...
    @overload
    def then(
        self: "Group[None]", task: "Task[Q, Next]", /, *arguments: Q.args, **options: Q.kwargs
    ) -> Chain[Next]: ...
    @overload
    def then(
        self,
        task: "Task[Concatenate[list[Returned], Q], Coroutine[Any, Any, Next]]",
        /,
        *arguments: Q.args,
        **options: Q.kwargs,
    ) -> Chain[Next]: ...
    @overload
    def then(
        self,
        task: "Task[Concatenate[list[Returned], Q], Next]",
        /,
        *arguments: Q.args,
        **options: Q.kwargs,
    ) -> Chain[Next]: ...
    def then(self, task: Any, /, *arguments: Any, **options: Any) -> Chain[Any]:
        """Return a chain that begins with the group: `task` is called when all members have completed.

        Its first argument is the list of what they return, unless all are annotated `-> None`.
        """
        if not isinstance(task, Task):
            raise invalid_kind("task", task, "a task; options are set with group(...).then(...).options(...)")
        takes_results = any(isinstance(one, NewMessage) or not one.returns_none for one in self._members)
        step = task.step(arguments, options, takes_result=takes_results)
        part = GroupPart(takes=step["takes"]) if "takes" in step else GroupPart()
        payload = Payload(task=step["task"], arguments=step["arguments"], group=part)
        call = PreparedGroup[Any](
            task, payload, EnqueueOptions(), task.returned, members=self._members, deadline=self._deadline
        )
        return Chain(task, call)


@overload
def group(
    members: Iterable[Chain[Returned]], /, *, deadline: timedelta | float = MAX_KEEP
) -> Group[Returned]: ...
@overload
def group(members: Iterable[NewMessage], /, *, deadline: timedelta | float = MAX_KEEP) -> Group[Any]: ...
def group(members: Iterable[Any], /, *, deadline: timedelta | float = MAX_KEEP) -> Group[Any]:
    """Begin a group: `group(chain(resize, 7, width=w) for w in (320, 640)).then(publish).enqueue("acme")`.

    Members are chains, also of a single step, which run in the channel of the group; or messages, made by
    `task.message(channel, ...)`, in channels of their own. Members that have not ended at the `deadline`
    count as failed.
    """
    found = argument.items("members", members, "chains, such as [chain(task, ...), ...]", MAX_MEMBERS)
    for index, one in enumerate(found):
        if not isinstance(one, Chain | NewMessage):
            raise invalid_kind(f"members[{index}]", one, "a chain, such as chain(task, ...), or a NewMessage")
    if not found:
        raise invalid("members", "no members", f"1 to {MAX_MEMBERS} members")
    return Group(tuple(found), deadline)
