"""Signatures of webhooks, held against the published example and an implementation of another's."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from notices.channels.signing import SECRET_BYTES, headers, new_secret

# The example of the specification's own libraries (github.com/standard-webhooks/standard-webhooks).
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE, AT = "msg_p5jXN8AQM9LWM0D4loKWxJek", datetime.fromtimestamp(1614265330, UTC)
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def check(secret: str, told: dict[str, str], body: bytes, signature: str) -> None:
    """The check of a receiver by another library's HMAC; raises InvalidSignature."""
    mac = HMAC(base64.b64decode(secret.partition("_")[2]), SHA256())
    mac.update(f"{told['webhook-id']}.{told['webhook-timestamp']}.".encode() + body)
    mac.verify(base64.b64decode(signature.removeprefix("v1,")))


def test_the_published_example_is_signed_as_it_was_published() -> None:
    assert headers(BODY, message_id=MESSAGE, at=AT, keys=[SECRET]) == {
        "webhook-id": MESSAGE,
        "webhook-timestamp": "1614265330",
        "webhook-signature": SIGNATURE,
    }


def test_a_secret_is_random_and_of_the_length_that_the_specification_takes() -> None:
    first, second = new_secret(), new_secret()
    assert first != second
    assert first.startswith("whsec_")
    assert len(base64.b64decode(first.removeprefix("whsec_"), validate=True)) == (
        SECRET_BYTES
    )
    assert 24 <= SECRET_BYTES <= 64


def test_each_secret_has_its_signature_and_they_stand_apart_by_a_space() -> None:
    old, new = new_secret(), new_secret()
    told = headers(BODY, message_id=MESSAGE, at=AT, keys=[new, old])
    by_new, by_old = told["webhook-signature"].split(" ")
    check(new, told, BODY, by_new)
    check(old, told, BODY, by_old)


@pytest.mark.parametrize("changed", ["body", "id", "moment", "secret"])
def test_whatever_is_changed_the_signature_no_longer_fits(changed: str) -> None:
    secret, other = new_secret(), new_secret()
    told = headers(BODY, message_id=MESSAGE, at=AT, keys=[secret])
    signature = told["webhook-signature"]
    check(secret, told, BODY, signature)
    later = str(int((AT + timedelta(seconds=1)).timestamp()))
    forged = told | {
        "body": {},
        "id": {"webhook-id": "msg_other"},
        "moment": {"webhook-timestamp": later},
        "secret": {},
    }.get(changed, {})
    body = BODY + b" " if changed == "body" else BODY
    with pytest.raises(InvalidSignature):
        check(other if changed == "secret" else secret, forged, body, signature)
