"""The certificate authority of a cluster's API server: checked when it is told, and written into what people paste."""

import base64
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from audit.models import Event
from fleet.authority import AuthorityRefused, authority_of, certificates_from
from fleet.clusters.actions import add_cluster, change_cluster
from fleet.models import Cluster
from provisioning.clusters.access import use_of
from tests import factories
from tests.calling import Caller
from web.refusals import BadInput

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
KEY = ec.generate_private_key(ec.SECP256R1())


def pem(name: str = "training-ca", *, ends: datetime | None = None) -> str:
    """A certificate authority, as it stands in a file."""
    called = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    until = ends or timezone.now() + timedelta(days=400)
    made = (
        x509.CertificateBuilder()
        .subject_name(called)
        .issuer_name(called)
        .public_key(KEY.public_key())
        .serial_number(7)
        .not_valid_before(until - timedelta(days=4000))
        .not_valid_after(until)
        .sign(KEY, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode().strip()


def private_key() -> str:
    """What must never stand there."""
    encoding, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return KEY.private_bytes(encoding, kind, serialization.NoEncryption()).decode()


@pytest.fixture
def priya(db: None) -> User:
    return factories.person("Priya Raman", Role.PLATFORM_LEAD)


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.cluster("training", api_server="https://train.example.com:443")


def test_the_certificates_are_kept_and_nothing_around_them() -> None:
    one, two = pem("one"), pem("two")
    assert (
        certificates_from(f"subject=CN=one\n{one}\r\n\n{two}\nEOF\nrm -rf /", now=NOW)
        == f"{one}\n{two}"
    )
    assert certificates_from("  \n", now=NOW) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "no certificate in PEM"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            "no certificate in PEM",
        ),
        (private_key(), "private key"),
        (f"{pem()}\n{private_key()}", "private key"),
        (pem(ends=NOW - timedelta(days=1)), "CN=training-ca has expired on 2026-11-19"),
        ("x" * 70_000, "longer than 65,536"),
    ],
)
def test_what_is_none_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(AuthorityRefused, match=said):
        certificates_from(text, now=NOW)


def test_the_commands_trust_it(cluster: Cluster, priya: User) -> None:
    tenancy = factories.tenancy(on=cluster)
    assert "certificate-authority" not in use_of(tenancy).login
    authority = pem()
    change_cluster(cluster.pk, values={"certificate_authority": authority}, by=priya)
    tenancy.cluster.refresh_from_db()
    lines = use_of(tenancy).login
    assert lines.startswith(
        f"cat > training-ca.crt <<'EOF'\n{authority}\nEOF\nkubectl config set-cluster training"
    )
    command = shlex.split(
        lines.partition("\nEOF\n")[2].partition("\nkubectl config set-credentials")[0]
    )
    assert "--certificate-authority=training-ca.crt" in command
    assert "--embed-certs=true" in command
    assert command[-1].startswith("--") or command[3] == "training"


def test_a_lead_tells_it_by_page_and_by_api_and_the_log_keeps_no_certificate(
    client: Client, cluster: Cluster, priya: User
) -> None:
    caller, authority = Caller(priya), pem()
    answer = caller.send(
        "PATCH", "clusters/training/", {"certificate_authority": authority}, key=None
    )
    assert (answer.status_code, answer.json()["certificate_authority"]) == (
        200,
        authority,
    )
    assert Event.objects.latest("seq").details["certificate_authority"] == "changed"
    bad = caller.send(
        "PATCH", "clusters/training/", {"certificate_authority": "hello"}, key=None
    )
    assert (bad.status_code, bad.json()["errors"][0]["pointer"]) == (
        422,
        "/certificate_authority",
    )
    client.force_login(priya)
    form = client.get("/clusters/training/edit")
    fields = form.context["form"]
    said = {name: fields[name].value() for name in fields.fields}
    said = {name: "" if value is None else value for name, value in said.items()}
    said |= {
        "certificate_authority": authority.replace("\n", "\r\n"),
        "title": "Other",
        "enabled": "on",
    }
    said |= {"shared_services": "[]", "egress": "[]"}
    count = Event.objects.count()
    assert client.post("/clusters/training/edit", said).status_code == 302
    assert Event.objects.count() == count + 1
    assert (
        "certificate_authority" not in Event.objects.latest("seq").details
    )  # it is the same
    wrong = client.post(
        "/clusters/training/edit", said | {"certificate_authority": private_key()}
    )
    assert wrong.status_code == 422
    assert "This holds a private key." in wrong.content.decode()
    assert Cluster.objects.get().certificate_authority == authority


def test_others_do_not_tell_it(cluster: Cluster) -> None:
    ada = Caller(factories.person("Ada"))
    answer = ada.send(
        "PATCH", "clusters/training/", {"certificate_authority": pem()}, key=None
    )
    assert answer.status_code == 403


@pytest.mark.parametrize("by_file", [False, True])
def test_it_comes_from_the_kubeconfig_file_where_nobody_told_it(
    cluster: Cluster, tmp_path: Path, settings: Any, by_file: bool
) -> None:
    settings.ENV = settings.ENV.model_copy(update={"kubeconfig_dir": str(tmp_path)})
    authority = pem("from the file")
    named = {"server": "https://10.0.0.1:443"}
    if by_file:
        (tmp_path / "ca.crt").write_text(authority)
        named["certificate-authority"] = "ca.crt"
    else:
        named["certificate-authority-data"] = base64.b64encode(
            f"{authority}\n".encode()
        ).decode()
    file = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": named}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    (tmp_path / "training.yaml").write_text(yaml.safe_dump(file))
    cluster.kubeconfig = "training.yaml"
    assert authority_of(cluster) == authority
    cluster.certificate_authority = pem("told")
    assert authority_of(cluster) == cluster.certificate_authority
    cluster.certificate_authority, cluster.kubeconfig = "", "gone.yaml"
    assert authority_of(cluster) == ""


def test_a_new_cluster_may_have_one(priya: User) -> None:
    values = {
        "title": "X",
        "region": "x",
        "purpose": "training",
        "certificate_authority": "hello",
    }
    with pytest.raises(BadInput) as refused:
        add_cluster(name="x", values=values, by=priya)
    assert (refused.value.field, refused.value.code) == (
        "certificate_authority",
        "bad_certificate",
    )
