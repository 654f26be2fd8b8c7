"""The form of a run, made from its template's parameters, so that form, API and client never disagree about one."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from provisioning.desired import priorities
from ui.parts import Lack
from web.fields import StrictForm, WholeNumberField, set_choices
from web.names import LONGEST_NAME
from workloads.runs.models import Run
from workloads.runs.pages.secrets_field import SecretsField, written
from workloads.runs.planning.plan import (
    Place,
    Problem,
    Submission,
    topology_of,
)
from workloads.runs.planning.pools import Pool, fitting
from workloads.runs.planning.words import level_words
from workloads.templates.library import Template, without_topology
from workloads.templates.parameters import MAX_SCRIPT_BYTES, MAX_TEXT, Parameter, Type
from workloads.templates.run import Topology

# Parameters that most runs leave as they are stand in a fold.
IN_THE_FOLD = frozenset({"grace", "restarts", "launcher"})
# These stand beside the volumes.
ABOUT_CHECKPOINTS = frozenset({"checkpoint", "checkpoint_minutes"})
EXAMPLES: Mapping[str, str] = {
    "image": "For example: docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime.",
    "program": "For example: train.py --epochs 3. With torchrun, write what follows it.",
    "checkpoint": "For example: /data/checkpoints. Each run makes a folder of its own there, named in QM_CHECKPOINTS.",
}
UNITS = {
    "gpus": "GPUs",
    "cpus": "CPUs",
    "memory": "GiB",
    "nodes": "nodes",
    "minutes": "minutes",
    "grace": "seconds",
    "checkpoint_minutes": "minutes",
}
# Where a refusal of the plan stands in the form.
SHOWN_AT = {"script": "script_text", "repository": "git_url", "template": ""}


class RunForm(StrictForm):
    """What to run. `token` makes a second sending harmless, and gives the run its name before it is sent."""

    also = StrictForm.also | {"check", "manifest"}

    title = forms.CharField(
        label="Name",
        max_length=LONGEST_NAME,
        help_text="What it is called here and, shortened, on the cluster.",
    )
    flavor = forms.ChoiceField(label="Kind of GPU", required=False)
    script_text = forms.CharField(
        label="Paste a script",
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 8, "class": "input--code", "spellcheck": "false"}
        ),
        help_text=f"It is put beside the image; at most {MAX_SCRIPT_BYTES // 1024} KiB. "
        "Leave it empty when the program is in the image.",
    )
    script_file = forms.CharField(label="Its file name", required=False, max_length=100)
    git_url = forms.CharField(
        label="Or fetch it from Git",
        required=False,
        max_length=MAX_TEXT,
        help_text="An address that begins with https:// and holds no password. It is fetched to /opt/source.",
    )
    git_secret = forms.CharField(
        label="Secret for a private one",
        required=False,
        max_length=253,
        help_text="The name of a Secret of your namespace with the keys username and password. Only git gets it.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "class": "input--code"}),
    )
    git_revision = forms.CharField(
        label="Branch, tag or commit", required=False, max_length=200
    )
    claims = forms.CharField(
        label="Volumes",
        required=False,
        max_length=2_000,
        widget=forms.Textarea(
            attrs={"rows": 2, "class": "input--code", "spellcheck": "false"}
        ),
    )
    variables = forms.CharField(
        label="Environment variables",
        required=False,
        max_length=20_000,
        widget=forms.Textarea(
            attrs={"rows": 3, "class": "input--code", "spellcheck": "false"}
        ),
        help_text="One in a line, such as EPOCHS=3. No passwords: everybody of the team can read them.",
    )
    secrets = SecretsField()
    topology = forms.ChoiceField(
        label="How close its nodes are",
        required=False,
        help_text="Closer nodes exchange faster, and may have to be waited for.",
    )
    priority = forms.ChoiceField(label="Priority", required=False)
    after = forms.ChoiceField(
        label="Begins after",
        required=False,
        help_text="It is sent when that run has finished, and skipped if that one does not finish.",
    )
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)

    def __init__(
        self,
        data: Any,
        *,
        template: Template,
        place: Place,
        volumes: Sequence[str],
        resumes: Mapping[str, Any] | None = None,
        folder: str = "",
        earlier: Sequence[Run] = (),
    ) -> None:
        """`resumes` is what the run was submitted with whose checkpoints, in `folder`, this one goes on from.

        `earlier` are the runs that it may begin after.
        """
        super().__init__(data, label_suffix="")
        self.template, self.place, self.resumes = template, place, resumes
        for one in template.parameters:
            self.fields[one.name] = _field(one)
        if resumes is not None and "checkpoint" in self.fields:
            kept = self.fields["checkpoint"]
            kept.disabled, kept.initial = True, resumes["values"].get("checkpoint", "")
            kept.help_text = (
                f"It goes on in {folder}, and keeps its own checkpoints there."
            )
        # What is offered and not held yet can be chosen, too: the answer leads to the form that asks for it.
        kinds = {
            **place.pools,
            **{
                name: one
                for name, one in place.offered.items()
                if name not in place.pools
            },
        }
        by_kind = [
            (name, pool_words(pool, with_memory=bool(template.gpu_memory)))
            for name, pool in kinds.items()
        ]
        set_choices(self, "flavor", [*by_kind, ("", "No GPU")])
        titles = [(name, priorities.title(name)) for name in place.priorities]
        set_choices(self, "priority", titles)
        self._offer_topology(place, template)
        self._offer_earlier(earlier)
        self.fields["claims"].help_text = (
            "One in a line: its name, a colon and where it is mounted, such as "
            f"{' or '.join(f'{name}:/data' for name in volumes)}. Behind it, :ro for one that is only read."
        )
        if not template.accepts_files:
            for name in (
                "script_text",
                "script_file",
                "git_url",
                "git_secret",
                "git_revision",
                "claims",
            ):
                del self.fields[name]

    def _offer_topology(self, place: Place, template: Template) -> None:
        """Offer the levels of the topologies that the held GPUs have; without any there is no such field.

        Where the nodes have some and the template cannot tell the cluster, `no_topology` says why.
        """
        levels = levels_of(place, template)
        self.no_topology = without_topology(template, place.abilities) if levels else ""
        if not levels or self.no_topology:
            del self.fields["topology"]
            if not self.data.get("topology"):
                # It comes from the form of another place, whose nodes have some.
                self.also = self.also | {"topology"}
            return
        ways = [
            Topology(level, is_required)
            for level in levels
            for is_required in (True, False)
        ]
        set_choices(
            self,
            "topology",
            [
                ("", "Anywhere"),
                *((topology_key(one), level_words(one)) for one in ways),
            ],
        )

    def _offer_earlier(self, earlier: Sequence[Run]) -> None:
        """Offer the runs that it may begin after; without any there is no such field."""
        if not earlier:
            del self.fields["after"]
            if not self.data.get("after"):
                # It comes from a form that was opened while one ran.
                self.also = self.also | {"after"}
            return
        offered = [(str(one.pk), earlier_words(one)) for one in earlier]
        set_choices(self, "after", [("", "No other run"), *offered])

    @property
    def numbers(self) -> list[str]:
        """The parameters that everybody looks at, after the image and the program."""
        names = [one.name for one in self.template.parameters]
        elsewhere = IN_THE_FOLD | ABOUT_CHECKPOINTS | {"image", "program"}
        return [name for name in names if name not in elsewhere]

    @property
    def folded(self) -> list[str]:
        """The parameters that most leave as they are."""
        names = [one.name for one in self.template.parameters]
        return [name for name in names if name in IN_THE_FOLD]

    @property
    def brings(self) -> list[str]:
        """What the template brings along, in sentences; nothing for one as it came with the product."""
        found: list[str] = []
        if self.template.repository is not None:
            url, revision = self.template.repository
            found.append(
                f"Without a program of yours it runs that of {url} at {revision}."
            )
        if self.template.claims:
            mounted = " and ".join(
                f"{one.name} at {one.path}" for one in self.template.claims
            )
            found.append(f"It mounts {mounted}.")
        if self.template.variables:
            found.append(f"It sets {', '.join(self.template.variables)}.")
        return found

    @property
    def brings_files(self) -> bool:
        """Whether a script or a source was given or refused."""
        return self._says("script_text", "git_url", "git_secret", "script_file")

    @property
    def brings_data(self) -> bool:
        """Whether a volume or a place for checkpoints was given or refused."""
        return self._says("claims", "checkpoint", "checkpoint_minutes")

    @property
    def brings_variables(self) -> bool:
        """Whether a variable was given or refused."""
        return self._says("variables", "secrets")

    def _says(self, *names: str) -> bool:
        usual = {"script_file": "train.py", "checkpoint_minutes": "0"}
        return any(
            name in self.errors or self.data.get(name, "") not in ("", usual.get(name))
            for name in names
        )

    @property
    def submission(self) -> Submission:
        """What a clean form asks for."""
        said = self.cleaned_data
        values = {
            one.name: said[one.name]
            for one in self.template.parameters
            if said[one.name] not in (None, "", ())
        }
        script, source = said.get("script_text", ""), said.get("git_url", "")
        return Submission(
            template=self.template.slug,
            title=said["title"],
            flavor=said["flavor"],
            priority=said["priority"],
            values=values,
            script={
                "file": said["script_file"] or "train.py",
                "text": script.replace("\r\n", "\n"),
            }
            if script.strip()
            else None,
            repository=_repository_in(said) if source else None,
            claims=said.get("claims") or (),
            variables=said["variables"] or {},
            secrets=said["secrets"] or (),
            topology=_topology_in(said.get("topology", "")),
            after=int(said["after"]) if said.get("after") else None,
        )

    @property
    def changes(self) -> dict[str, Any]:
        """What a clean form makes of the run that it goes on from: everything as it stands here, and nothing else."""
        asked, kept = self.submission, self.resumes or {"values": {}, "variables": {}}
        return {
            "template": asked.template,
            "title": asked.title,
            "flavor": asked.flavor,
            "priority": asked.priority,
            "script": asked.script,
            "repository": asked.repository,
            "claims": asked.claims,
            "secrets": asked.secrets,
            "topology": asked.topology,
            "after": asked.after,
            "values": {**dict.fromkeys(kept["values"]), **asked.values},
            "variables": {**dict.fromkeys(kept["variables"]), **asked.variables},
        }

    @property
    def missing(self) -> list[str]:
        """The labels of what has to be filled in and is empty."""
        return [
            str(field.label)
            for name, field in self.fields.items()
            if self._is_missing(name)
        ]

    @property
    def wrong(self) -> list[Lack]:
        """What is refused of what was filled in, behind the label of its field."""
        found: list[Lack] = []
        for name, texts in self.errors.items():
            said = " ".join(map(str, texts))
            if name not in self.fields:
                found.append({"text": said, "field": ""})
            elif not self._is_missing(name):
                label = self.fields[name].label
                found.append({"text": f"{label}: {said}", "field": name})
        return found

    def _is_missing(self, name: str) -> bool:
        field = self.fields.get(name)
        is_asked = field is not None and field.required and not field.disabled
        return is_asked and not str(self.data.get(name, "")).strip()

    def add_problems(self, problems: Sequence[Problem]) -> None:
        """Put what the plan refuses at its fields."""
        for one in problems:
            name = SHOWN_AT.get(one.field, one.field)
            self.add_error(name if name in self.fields else None, one.text)

    def clean(self) -> dict[str, Any]:
        """Refuse a Secret for a source that is not named."""
        said: dict[str, Any] = super().clean() or {}
        if said.get("git_secret") and not said.get("git_url"):
            self.add_error("git_url", "Give the address that its Secret is for.")
        return said

    def clean_claims(self) -> list[dict[str, object]]:
        """The volumes; raises ValidationError for a line that names none."""
        found: list[dict[str, object]] = []
        for line in _lines(self.cleaned_data["claims"]):
            name, _, rest = line.partition(":")
            path, _, mode = rest.partition(":")
            if not path or mode not in ("", "ro", "rw"):
                raise forms.ValidationError(
                    f"“{line[:60]}” is not of the form name:/path.", code="claims"
                )
            found.append({"name": name, "path": path, "read_only": mode == "ro"})
        return found

    def clean_variables(self) -> dict[str, str]:
        """The variables; raises ValidationError for a line without a sign of equality."""
        found: dict[str, str] = {}
        for line in _lines(self.cleaned_data["variables"]):
            name, sign, value = line.partition("=")
            if not sign:
                raise forms.ValidationError(
                    f"“{line[:60]}” is not of the form NAME=value.", code="variables"
                )
            found[name.strip()] = value
        return found


class WordsField(forms.CharField):
    """A command line, taken apart as a shell would; nothing in it is carried out by one."""

    def clean(self, value: Any) -> tuple[str, ...]:
        """Its words; raises ValidationError for a quotation without an end."""
        text = super().clean(value)
        try:
            return tuple(shlex.split(text))
        except ValueError as error:
            raise forms.ValidationError(
                "A quotation mark has no partner.", code="words"
            ) from error


def starts(
    template: Template, place: Place, given: Mapping[str, str]
) -> dict[str, str]:
    """What a form begins with: what the link says, else the template's defaults and the first kind of GPU held."""
    found = {
        one.name: shown(one.default)
        for one in template.parameters
        if one.default is not None
    }
    are_together = any(
        found.get(name, "1") not in ("0", "1") for name in ("gpus", "nodes")
    )
    found["flavor"] = fitting(place.pools, template, are_together=are_together) or next(
        iter(place.pools), ""
    )
    found["script_file"] = "train.py"
    usual = (
        template.priority
        if template.priority in place.priorities
        else place.where.priority
    )
    found["priority"] = usual if usual in place.priorities else place.priorities[-1]
    if not place.pools and "gpus" in found:
        found["gpus"] = "0"
    names = {*RunForm.base_fields, *(one.name for one in template.parameters)}
    if not levels_of(place, template) or without_topology(template, place.abilities):
        names.discard("topology")
    if not given.get("priority"):
        # A run that named none had the usual one, and goes on with it.
        names.discard("priority")
    return found | {name: value for name, value in given.items() if name in names}


def starts_again(submission: Mapping[str, Any]) -> dict[str, str]:
    """The form filled in with what another run was submitted with."""
    script, source = submission["script"] or {}, submission["repository"] or {}
    claims = [
        f"{one['name']}:{one['path']}{':ro' if one.get('read_only') else ''}"
        for one in submission["claims"]
    ]
    return {
        **{name: shown(value) for name, value in submission["values"].items()},
        "title": submission["title"],
        "flavor": submission["flavor"],
        "priority": submission["priority"],
        "script_text": script.get("text", ""),
        "script_file": script.get("file", "train.py"),
        "git_url": source.get("url", ""),
        "git_revision": source.get("revision", ""),
        "git_secret": source.get("secret", ""),
        "claims": "\n".join(claims),
        "topology": topology_key(topology_of(submission.get("topology"))),
        "variables": "\n".join(
            f"{name}={value}" for name, value in submission["variables"].items()
        ),
        "secrets": written(submission.get("secrets", ())),
    }


def levels_of(place: Place, template: Template) -> list[str]:
    """The levels of the topologies of the GPUs that a team holds; none for a template that does not gather its pods."""
    pools = place.pools.values() if template.is_gathered else ()
    return [*dict.fromkeys(level for pool in pools for level in pool.levels)]


def topology_key(topology: Topology | None) -> str:
    """A topology as the form's choice names it."""
    if topology is None:
        return ""
    return f"{'required' if topology.is_required else 'preferred'}:{topology.level}"


def _repository_in(said: Mapping[str, Any]) -> dict[str, str]:
    secret = {"secret": said["git_secret"]} if said["git_secret"] else {}
    return {
        "url": said["git_url"],
        "revision": said["git_revision"] or "main",
        **secret,
    }


def _topology_in(key: str) -> dict[str, object] | None:
    way, _, level = key.partition(":")
    return {"level": level, "required": way == "required"} if level else None


def shown(value: object) -> str:
    """A value as its input shows it."""
    if isinstance(value, bool):
        return "on" if value else ""
    return shlex.join(value) if isinstance(value, list | tuple) else str(value)


def earlier_words(run: Run) -> str:
    """A run as the form offers it to begin after."""
    return f"{run.title}, run {run.pk}: {run.word.lower()}"


def pool_words(pool: Pool, *, with_memory: bool = False) -> str:
    """A kind of GPU as the form offers it: what the team holds, and what it may borrow."""
    memory = f", {pool.memory} GB" if with_memory and pool.memory else ""
    borrow = f", {pool.borrow} more to borrow" if pool.borrow else ""
    cuda = f", CUDA up to {pool.cuda}" if pool.cuda else ""
    return f"{pool.title}{memory}: {pool.gpus or 'none'} held{borrow}{cuda}"


def _field(one: Parameter) -> forms.Field:
    common: dict[str, Any] = {
        "label": one.title,
        "help_text": _help_of(one),
        "required": one.is_needed and one.type is not Type.FLAG,
        "disabled": one.is_fixed,
        "initial": shown(one.default) if one.is_fixed else None,
        "error_messages": {"required": f"{one.title} is needed."},
    }
    if one.type is Type.COUNT:
        return WholeNumberField(
            most=one.maximum,
            least=one.minimum,
            of=UNITS.get(one.name, one.name),
            **common,
        )
    if one.type is Type.CHOICE:
        return forms.ChoiceField(
            choices=[(each, each) for each in one.choices], **common
        )
    if one.type is Type.FLAG:
        return forms.BooleanField(**common)
    kind = WordsField if one.type is Type.WORDS else forms.CharField
    most = MAX_TEXT * 10 if one.type is Type.WORDS else MAX_TEXT
    return kind(
        max_length=most,
        # Without `autocomplete="off"`, for which browsers leave a field empty after Back.
        widget=forms.TextInput(attrs={"spellcheck": "false", "class": "input--code"}),
        **common,
    )


def _help_of(one: Parameter) -> str:
    if one.is_fixed:
        return f"{one.help} The template sets it.".strip()
    return one.help if one.type is Type.CHOICE else EXAMPLES.get(one.name, one.help)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
