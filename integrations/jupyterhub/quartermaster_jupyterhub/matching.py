"""Matches what people typed with a pattern, and gives up on a pattern that takes for ever."""

import asyncio
import json
import sys
from contextlib import suppress

SECONDS = 2.0
PROGRAM = "import json, re, sys; p, v = json.load(sys.stdin); sys.exit(0 if re.fullmatch(p, v) else 3)"
MATCHES, OTHER = 0, 3


async def matches(pattern: str, value: str) -> bool:
    """Whether the pattern matches all of the value.

    A process of its own looks, for a match holds the whole hub up and cannot be interrupted: what takes longer than two
    seconds there, or is no pattern, does not match.
    """
    if not pattern:
        return True
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await asyncio.wait_for(
            process.communicate(json.dumps([pattern, value]).encode()), SECONDS
        )
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode == MATCHES
