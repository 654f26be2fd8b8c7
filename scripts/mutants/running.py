"""Runs a module's own tests against each change of it, in processes that have loaded everything else before.

A change within a function is put in place of the function's code where the tests are loaded already, and a change of a
table in place of the table; any other change takes importing the module, and all that imports it, anew.
"""

import functools
import inspect
import os
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings

from scripts.mutants.changing import Mutant, mutants

FORK = get_context("fork")
# Tests that need one of these start a server: they are not what a pure module is tested by.
SERVERS = frozenset(
    {
        "db",
        "transactional_db",
        "postgres",
        "redis",
        "own_postgres",
        "own_redis",
        "kubernetes_server",
    }
)
# What a change may make the tests take, in CPU time, before it counts as noticed: an endless loop must end.
CPU_SECONDS, CPU_TIMES = 20, 5
MEMORY_BYTES = 4 << 30
PROFILE = "mutants"
PLAIN = (str, int, float, bool, type(None), Decimal, timedelta, re.Pattern)
OPTIONS = [
    "-q",
    "-x",
    "--assert=plain",
    "-p",
    "no:randomly",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
]


class OwnTestsFail(Exception):
    """A module's own tests do not pass, or there are none, before anything was changed."""


@dataclass(frozen=True)
class Target:
    """A module and the tests that are its own, as paths below the root."""

    root: Path
    path: str
    tests: Sequence[str]

    @property
    def name(self) -> str:
        """The module's name."""
        return self.path.removesuffix(".py").replace("/", ".")

    @property
    def file(self) -> Path:
        """Where its source stands."""
        return self.root / self.path

    @property
    def arguments(self) -> list[str]:
        """What pytest runs."""
        return [
            *OPTIONS,
            f"--rootdir={self.root}",
            *(str(self.root / each) for each in self.tests),
        ]


@dataclass
class Known:
    """What the tests do while nothing is changed: functions of the module by test, CPU seconds by test."""

    called: dict[str, set[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def most_seconds(self) -> int:
        """The CPU time after which the tests of a mutant have gone wrong."""
        return int(CPU_SECONDS + CPU_TIMES * sum(self.seconds.values()))

    def quickest_first(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """The tests in the order in which one that fails is found soonest."""
        return sorted(items, key=lambda item: self.seconds.get(item.nodeid, 0.0))


@dataclass(frozen=True)
class Result:
    """What became of a module's mutants."""

    number: int
    survivors: list[Mutant]

    @property
    def share(self) -> float:
        """The share that was noticed; all of none."""
        return 1.0 if not self.number else 1 - len(self.survivors) / self.number


def try_mutants(target: Target, *, jobs: int) -> Result:
    """Run the tests against every mutant. Raises OwnTestsFail."""
    # One example that fails is enough: to find the smallest takes longer than all else.
    phases = [Phase.explicit, Phase.generate]
    hypothesis_settings.register_profile(
        PROFILE, deadline=None, derandomize=True, phases=phases
    )
    os.environ["HYPOTHESIS_PROFILE"] = PROFILE
    known_here, known_there = FORK.Pipe(duplex=False)
    loading = FORK.Process(
        target=_silently, args=(lambda: _load_and_try(target, known_there, jobs),)
    )
    loading.start()
    known_there.close()
    try:
        known, number, left, anew = known_here.recv()
    except EOFError:
        raise OwnTestsFail(
            f"the tests of {target.path} fail, or are none: pytest {' '.join(target.tests)}"
        ) from None
    finally:
        loading.join()
    found = mutants(target.file.read_text())
    codes = exit_codes(
        [functools.partial(_try_anew, target, found[each], known) for each in anew],
        jobs=jobs,
    )
    left += [each for each, code in zip(anew, codes, strict=True) if code == 0]
    return Result(number, [found[each] for each in sorted(left)])


def exit_codes(works: Sequence[Callable[[], int]], *, jobs: int) -> list[int]:
    """What each work returned in a process of its own, of which `jobs` run at once; negative when it was killed."""
    codes = dict.fromkeys(range(len(works)), 0)
    waiting = list(reversed(codes))
    running: dict[Any, Any] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            number = waiting.pop()
            process = FORK.Process(target=_silently, args=(works[number],))
            process.start()
            running[process.sentinel] = number, process
        for sentinel in wait(list(running)):
            number, process = running.pop(sentinel)
            process.join()
            codes[number] = process.exitcode or 0
    return list(codes.values())


def preload(target: Target) -> None:
    """Import what the tests import from elsewhere, so that the processes to come need not."""
    here, there = FORK.Pipe(duplex=False)
    process = FORK.Process(
        target=_silently, args=(lambda: _send_imported(target, there),)
    )
    process.start()
    there.close()
    with suppress(EOFError):
        for name in here.recv():
            # What needs settings or a loaded Django is imported when these are there.
            with suppress(Exception):
                import_module(name)
    process.join()


def _send_imported(target: Target, there: Connection) -> int:
    code = pytest.main([*target.arguments, "--collect-only"])
    packages = Path(pytest.__file__).parent.parent
    there.send(
        [
            name
            for name, module in list(sys.modules.items())
            if (file := getattr(module, "__file__", None))
            and (
                packages in Path(file).parents or target.root not in Path(file).parents
            )
        ]
    )
    return int(code)


def _silently(work: Callable[[], int]) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    # What was opened before goes on: neither servers nor temporary folders of the parent are this process's to end.
    os._exit(work())


def _limit(known: Known) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (known.most_seconds, known.most_seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


class _Pure:
    """Leaves out the tests that start a server, and begins with the quickest."""

    def __init__(self, known: Known | None = None) -> None:
        self.known = known or Known()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = self.known.quickest_first(
            [item for item in items if not _starts_server(item)]
        )


def _starts_server(item: pytest.Item) -> bool:
    names = set(getattr(item, "fixturenames", ()))
    return bool(SERVERS & names) or item.get_closest_marker("django_db") is not None


class _Finder(MetaPathFinder):
    """Finds the changed module in the place of the one on disk."""

    def __init__(self, target: Target, tree: Any) -> None:
        self.target = target
        self.tree = tree

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        if fullname != self.target.name:
            return None
        loader = _Loader(fullname, str(self.target.file))
        loader.tree = self.tree
        return spec_from_file_location(fullname, self.target.file, loader=loader)


class _Loader(SourceFileLoader):
    tree: Any = None

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.tree, self.path, "exec")


def _try_anew(target: Target, mutant: Mutant, known: Known) -> int:
    _limit(known)
    sys.meta_path.insert(0, _Finder(target, mutant.tree))
    return int(pytest.main(target.arguments, plugins=[_Pure(known)]))


def _load_and_try(target: Target, there: Connection, jobs: int) -> int:
    calls = _Calls(target.file)
    sys.setprofile(calls)
    return int(
        pytest.main(
            target.arguments, plugins=[_Pure(), _Trying(target, there, calls, jobs)]
        )
    )


class _Calls:
    """Notes which functions of a module are called, under the name of the outermost one."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)
        self.names: set[str] = set()

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_filename == self.file:
            self.names.add(frame.f_code.co_qualname.partition(".<locals>")[0])


class _Trying:
    """Tries the mutants in the place of running the tests once."""

    def __init__(
        self, target: Target, there: Connection, calls: _Calls, jobs: int
    ) -> None:
        self.target = target
        self.there = there
        self.calls = calls
        self.jobs = jobs
        self.has_failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.has_failed = self.has_failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        sys.setprofile(None)
        known = self._know(session.items)
        if known is None:
            return True
        found = mutants(self.target.file.read_text())
        codes = self._codes()
        at_import = self.calls.names
        works, numbers, anew = [], [], []
        for number, mutant in enumerate(found):
            change = codes.change(mutant)
            if change is None:
                anew.append(number)
                continue
            numbers.append(number)
            works.append(
                functools.partial(
                    self._try, change, self._tests(session.items, known, mutant), known
                )
            )
        left = [
            each
            for each, code in zip(
                numbers, exit_codes(works, jobs=self.jobs), strict=True
            )
            if code == 0
        ]
        # What ran only while the tests were loaded has done so without the change.
        loaded = {None, *at_import}.difference(*known.called.values())
        again = [each for each in left if found[each].function in loaded]
        self.there.send(
            (
                known,
                len(found),
                [each for each in left if each not in again],
                [*anew, *again],
            )
        )
        return True

    def _know(self, items: Sequence[pytest.Item]) -> Known | None:
        here, there = FORK.Pipe(duplex=False)
        process = FORK.Process(
            target=_silently, args=(lambda: self._send_known(items, there),)
        )
        process.start()
        there.close()
        try:
            known: Known = here.recv()
        except EOFError:
            return None
        finally:
            process.join()
        return known if known.seconds else None

    def _send_known(self, items: Sequence[pytest.Item], there: Connection) -> int:
        known, at_import = Known(), set(self.calls.names)
        for item, following in _with_next(items):
            self.calls.names = set()
            began = time.process_time()
            sys.setprofile(self.calls)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            sys.setprofile(None)
            known.seconds[item.nodeid] = time.process_time() - began
            known.called[item.nodeid] = self.calls.names
        self.calls.names = at_import
        if not self.has_failed:
            there.send(known)
        return 0

    def _tests(
        self, items: Sequence[pytest.Item], known: Known, mutant: Mutant
    ) -> list[pytest.Item]:
        function = mutant.function
        return known.quickest_first(
            [
                item
                for item in items
                if function is None or function in known.called[item.nodeid]
            ]
        )

    def _try(
        self, change: Callable[[], None], items: Sequence[pytest.Item], known: Known
    ) -> int:
        _limit(known)
        change()
        for item, following in _with_next(items):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.has_failed:
                return 1
        return 0

    def _codes(self) -> "_Codes":
        return _Codes(sys.modules[self.target.name], self.target.file.read_text())


def _with_next(
    items: Sequence[pytest.Item],
) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    yield from zip(items, [*items[1:], None][: len(items)], strict=True)


class _Codes:
    """The functions of a loaded module, and how to change one of them for everybody who has imported it."""

    def __init__(self, module: ModuleType, source: str) -> None:
        self.module = module
        self.path = str(module.__file__)
        self.functions = dict(_functions(vars(module), module.__name__))

    def change(self, mutant: Mutant) -> Callable[[], None] | None:
        """What puts the change in place; None when the module has to be imported anew for it."""
        if mutant.function is None:
            return functools.partial(_put_tables, self.module, mutant)
        functions = [
            each
            for (name, _), each in self.functions.items()
            if name == mutant.function
        ]
        if len(functions) != 1:
            return None
        code = _code(compile(mutant.tree, self.path, "exec"), mutant.function)
        if (
            code is None
            or code.co_freevars != inspect.unwrap(functions[0]).__code__.co_freevars
        ):
            return None
        return functools.partial(_put, functions[0], code)


def _put(outer: Any, code: CodeType) -> None:
    function: Any = inspect.unwrap(outer)
    function.__code__ = code
    if hasattr(outer, "cache_clear"):
        outer.cache_clear()


def _put_tables(module: ModuleType, mutant: Mutant) -> None:
    """Give every module that has one of the module's tables or constants the changed one."""
    changed = {"__name__": module.__name__, "__file__": module.__file__}
    # Nothing from outside: the project's own module, with one change.
    exec(compile(mutant.tree, str(module.__file__), "exec"), changed)  # noqa: S102
    for name, old in list(vars(module).items()):
        new = changed.get(name)
        if (
            name.startswith("__")
            or not _is_plain(old)
            or not _is_plain(new)
            or _alike(old, new)
        ):
            continue
        for other in list(sys.modules.values()):
            if vars(other).get(name) is old:
                setattr(other, name, new)


def _is_plain(value: object) -> bool:
    """Whether it is data alone: what belongs to a class of the module is of another class in the changed one."""
    if isinstance(value, dict):
        return all(map(_is_plain, (*value, *value.values())))
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_plain, value))
    return type(value) in PLAIN


def _alike(old: object, new: object) -> bool:
    return old == new and repr(old) == repr(new)


def _functions(
    names: dict[str, Any], module: str
) -> Iterator[tuple[tuple[str, int], Any]]:
    """The functions that a module defines, as they can be called, by qualified name and first line."""
    for value in list(names.values()):
        if inspect.isclass(value) and value.__module__ == module:
            yield from _functions(dict(vars(value)), module)
            continue
        inner = _callable(value)
        plain = inspect.unwrap(inner) if callable(inner) else None
        if isinstance(plain, FunctionType) and plain.__module__ == module:
            yield (plain.__code__.co_qualname, plain.__code__.co_firstlineno), inner


def _callable(value: Any) -> Any:
    if isinstance(value, property):
        return value.fget
    if isinstance(value, (staticmethod, classmethod)):
        return value.__func__
    return value.func if isinstance(value, functools.cached_property) else value


def _code(within: CodeType, function: str) -> CodeType | None:
    """The code of the function with this qualified name; None when there is not just one."""
    found = [each for each in _codes(within) if each.co_qualname == function]
    return found[0] if len(found) == 1 else None


def _codes(within: CodeType) -> Iterator[CodeType]:
    for each in within.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)
