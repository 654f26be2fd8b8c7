"""Variables of containers: which may be set, which values come from Secrets, and what the kubelet says of those."""

import pytest

from provisioning.desired.variables import (
    MAX_SECRETS,
    SecretVariable,
    lacking_secret,
    names_in_words,
    refused_secret,
    refused_secrets,
    refused_variables,
    taken_from,
    too_many_secrets,
)

TOKEN = SecretVariable("HF_TOKEN", "huggingface", "token")


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "KUBERNETES_SERVICE_HOST", "PATH", "QM_RUN", "9lives", "a-b", ""],
)
def test_variables_that_a_run_cannot_set(name: str) -> None:
    assert refused_variables([name])


@pytest.mark.parametrize("name", ["EPOCHS", "NCCL_DEBUG", "PATHS", "ENV_", "a" * 100])
def test_variables_that_a_run_can_set(name: str) -> None:
    assert refused_variables([name]) == ""


def test_who_cannot_set_a_variable_is_named() -> None:
    assert refused_variables(["EPOCHS", "PATH"], by="a notebook") == (
        "PATH is set by the cluster or changes which code runs, so a notebook cannot set it."
    )


@pytest.mark.parametrize(
    ("secret", "key", "words"),
    [
        ("huggingface", "token", ""),
        ("a" * 253, "k" * 253, ""),
        ("a.b-c", "tls.crt", ""),
        ("git-read", "", ""),
        ("a" * 254, "token", "no name of a Secret"),
        ("Hugging Face", "token", "no name of a Secret"),
        ("-a", "token", "no name of a Secret"),
        ("", "token", "no name of a Secret"),
        ("huggingface", "k" * 254, "no key of a Secret"),
        ("huggingface", "a/b", "no key of a Secret"),
        ("huggingface", ".", "no key of a Secret"),
        ("huggingface", "..data", "no key of a Secret"),
    ],
)
def test_secrets_and_keys_are_called_as_in_kubernetes(
    secret: str, key: str, words: str
) -> None:
    refused = refused_secret(secret, key)
    assert words in refused if words else refused == ""


@pytest.mark.parametrize(
    ("secrets", "beside", "words"),
    [
        ([TOKEN], [], ""),
        ([], ["HF_TOKEN"], ""),
        ([TOKEN], ["EPOCHS"], ""),
        ([TOKEN, TOKEN], [], "HF_TOKEN is given twice"),
        ([TOKEN], ["HF_TOKEN"], "HF_TOKEN is given twice"),
        ([SecretVariable("PATH", "a", "b")], [], "a run cannot set it"),
        ([TOKEN, SecretVariable("OTHER", "A", "b")], [], "'A' is no name of a Secret"),
    ],
)
def test_variables_from_secrets_are_refused_with_the_first_sentence(
    secrets: list[SecretVariable], beside: list[str], words: str
) -> None:
    refused = refused_secrets(secrets, beside=beside)
    assert words in refused if words else refused == ""


def test_there_is_a_limit_to_their_number() -> None:
    assert too_many_secrets(MAX_SECRETS) == ""
    assert too_many_secrets(MAX_SECRETS + 1, by="A notebook") == (
        "A notebook takes at most 20 variables from Secrets."
    )


def test_a_value_that_is_needed_keeps_its_container_waiting() -> None:
    needed = {"name": "huggingface", "key": "token"}
    assert taken_from("huggingface", "token") == {"secretKeyRef": needed}
    assert taken_from("huggingface", "token", is_needed=False) == {
        "secretKeyRef": {**needed, "optional": True}
    }


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            'secret "huggingface" not found',
            "The Secret huggingface, which it takes a value from, is not in its namespace.",
        ),
        (
            "couldn't find key token in Secret qm-vision/huggingface",
            "The Secret huggingface, which it takes a value from, has no key token.",
        ),
        ("container has runAsNonRoot and image will run as root", ""),
    ],
)
def test_what_a_container_waits_for_is_read_from_the_kubelets_message(
    message: str, words: str
) -> None:
    assert lacking_secret(message) == words


def test_a_row_has_the_names_alone_and_people_read_them() -> None:
    assert SecretVariable.of(TOKEN.as_json) == TOKEN
    both = [TOKEN, SecretVariable("WANDB_API_KEY", "wandb", "key")]
    assert names_in_words(both) == "HF_TOKEN from huggingface, WANDB_API_KEY from wandb"
