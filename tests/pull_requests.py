"""A host of pull requests for tests: GitHub's paths and answers, beside repositories that Git's own program serves."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from tests.remotes import Bare


@dataclass
class Hub:
    """The pull requests of one repository, answered as GitHub's REST API does."""

    theirs: Bare
    pulls: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    fails: list[int] = field(default_factory=list)
    failing_with: dict[str, str] = field(default_factory=dict)
    words: str = "Bad credentials"
    comments: list[tuple[int, str]] = field(default_factory=list)
    before: dict[str, Callable[[], object]] = field(default_factory=dict)
    hidden: int = 0
    shows_all: bool = False
    lists: bool = True

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        place = path.removeprefix("/api/v3/repos/platform/fleet/").split("/")
        assert place[0] in ("pulls", "issues")
        self.asked.append((method, environ.get("HTTP_AUTHORIZATION", "")))
        self.before.pop(method, lambda: None)()
        if self.fails:
            return _answer(
                start_response,
                self.fails.pop(0),
                {"message": self.words},
                self.failing_with,
            )
        if method == "GET":
            found = self._listed(parse_qs(environ["QUERY_STRING"]))
            return _answer(
                start_response, 200, found if self.lists else {"items": found}
            )
        sent = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        if place[0] == "issues":
            self.comments.append((int(place[1]), sent["body"]))
            return _answer(start_response, 201, {"id": len(self.comments)})
        if method == "PATCH":
            return self._change(int(place[1]), sent, start_response)
        return self._open(sent, start_response)

    def merge(self) -> None:
        """What a person does with the newest one."""
        pull = self.pulls[-1]
        self.theirs.push(dict(self.theirs.files(pull["head"])))
        pull |= {
            "state": "closed",
            "merged_at": "2026-11-21T10:00:00Z",
            "left_at": self.theirs.tip(pull["head"]),
        }

    def close(self) -> None:
        """What a person does with the newest one who decides against it."""
        self.pulls[-1] |= {
            "state": "closed",
            "left_at": self.theirs.tip(self.pulls[-1]["head"]),
        }

    def _listed(self, asked: dict[str, list[str]]) -> list[dict[str, Any]]:
        if self.hidden:
            self.hidden -= 1
            return []
        heads, states = asked.get("head", []), {*asked["state"]}
        found = [
            self._told(pull)
            for pull in reversed(self.pulls)
            if self.shows_all
            or (
                heads in ([], [f"platform:{pull['head']}"])
                and pull["base"] in asked.get("base", [pull["base"]])
                and states & {"all", pull["state"]}
            )
        ]
        size, page = (
            int(asked.get("per_page", ["30"])[0]),
            int(asked.get("page", ["1"])[0]),
        )
        return found[(page - 1) * size : page * size]

    def _open(self, wanted: dict[str, Any], start_response: Any) -> list[bytes]:
        if any(
            pull["state"] == "open" and pull["head"] == wanted["head"]
            for pull in self.pulls
        ):
            return _answer(
                start_response,
                422,
                {
                    "message": "Validation Failed",
                    "errors": [
                        {
                            "message": f"A pull request already exists for platform:{wanted['head']}."
                        }
                    ],
                },
            )
        pull = wanted | {
            "number": len(self.pulls) + 12,
            "state": "open",
            "merged_at": None,
        }
        self.pulls.append(pull)
        return _answer(start_response, 201, self._told(pull))

    def _change(
        self, number: int, wanted: dict[str, Any], start_response: Any
    ) -> list[bytes]:
        [pull] = [pull for pull in self.pulls if pull["number"] == number]
        if pull["state"] == "open":
            pull |= {"left_at": self.theirs.tip(pull["head"])}
        pull |= wanted
        return _answer(start_response, 200, self._told(pull))

    def _told(self, pull: dict[str, Any]) -> dict[str, Any]:
        sha = (
            self.theirs.tip(pull["head"])
            if pull["state"] == "open"
            else pull["left_at"]
        )
        told = {name: pull[name] for name in ("number", "state", "merged_at", "title")}
        label = f"{pull.get('owner', 'platform')}:{pull['head']}"
        return told | {"head": {"sha": sha, "ref": pull["head"], "label": label}}


def _answer(
    start_response: Any,
    status: int,
    body: Any,
    headers: Mapping[str, str] | None = None,
) -> list[bytes]:
    text = json.dumps(body).encode()
    start_response(
        f"{status} Said",
        [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(text))),
            *(headers or {}).items(),
        ],
    )
    return [text]
