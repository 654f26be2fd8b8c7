"""The rules for names, labels and annotation keys, in the words of the API server."""

import re

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
SERVICE = r"[a-z]([-a-z0-9]*[a-z0-9])?"
KEY_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
LABEL_VALUE = rf"({KEY_NAME})?"
CONFIG_KEY = r"[-._a-zA-Z0-9]+"

LABEL_MAX, SUBDOMAIN_MAX = 63, 253

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{SUBDOMAIN}')"
)
_SERVICE_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
    f"is '{SERVICE}')"
)
_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{KEY_NAME}')"
)
_PREFIX_RULE = (
    "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
    f"is '{LABEL_VALUE}')"
)
_CONFIG_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    f"or 'key-name', regex used for validation is '{CONFIG_KEY}')"
)


def _matches(pattern: str, value: str) -> bool:
    return re.fullmatch(pattern, value, re.ASCII) is not None


def dns_label(value: str) -> list[str]:
    """What is wrong with the name of a namespace."""
    wrong = (
        [f"must be no more than {LABEL_MAX} characters"]
        if len(value) > LABEL_MAX
        else []
    )
    if not _matches(LABEL, value):
        wrong.append(
            "must not contain dots" if _matches(SUBDOMAIN, value) else _LABEL_TEXT
        )
    return wrong


def dns_subdomain(value: str) -> list[str]:
    """What is wrong with the name of most objects."""
    wrong = (
        [f"must be no more than {SUBDOMAIN_MAX} characters"]
        if len(value) > SUBDOMAIN_MAX
        else []
    )
    return wrong if _matches(SUBDOMAIN, value) else [*wrong, _SUBDOMAIN_TEXT]


def service_name(value: str) -> list[str]:
    """What is wrong with the name of a Service."""
    wrong = (
        [f"must be no more than {LABEL_MAX} characters"]
        if len(value) > LABEL_MAX
        else []
    )
    return wrong if _matches(SERVICE, value) else [*wrong, _SERVICE_TEXT]


def path_segment(value: str) -> list[str]:
    """What is wrong with the name of a role or a binding, which may be nearly anything."""
    if value in {".", ".."}:
        return [f"may not be '{value}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in value]


def _key(value: str, whole: str, unit: str) -> list[str]:
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return [f"{whole} {_NAME_RULE} {_PREFIX_RULE}"]
    wrong: list[str] = []
    if slash and not prefix:
        wrong.append("prefix part must be non-empty")
    elif slash:
        wrong.extend(f"prefix part {text}" for text in dns_subdomain(prefix))
    if not name:
        wrong.append("name part must be non-empty")
    elif len(name) > LABEL_MAX:
        wrong.append(f"name part must be no more than {LABEL_MAX} {unit}")
    return wrong if _matches(KEY_NAME, name) else [*wrong, f"name part {_NAME_RULE}"]


def label_key(value: str) -> list[str]:
    """What is wrong with the key of a label or an annotation."""
    return _key(value, "a valid label key", "bytes")


def qualified_name(value: str) -> list[str]:
    """What is wrong with the name of a resource such as nvidia.com/gpu."""
    return _key(value, "a qualified name", "characters")


def label_value(value: str) -> list[str]:
    """What is wrong with the value of a label."""
    wrong = (
        [f"must be no more than {LABEL_MAX} bytes"]
        if len(value.encode()) > LABEL_MAX
        else []
    )
    return wrong if _matches(LABEL_VALUE, value) else [*wrong, _VALUE_TEXT]


def config_key(value: str) -> list[str]:
    """What is wrong with a key of a ConfigMap or a Secret."""
    if len(value) > SUBDOMAIN_MAX:
        return [f"must be no more than {SUBDOMAIN_MAX} characters"]
    if value in {".", ".."}:
        return [f"must not be '{value}'"]
    return [] if _matches(CONFIG_KEY, value) else [_CONFIG_KEY_TEXT]
