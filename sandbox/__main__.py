"""The command `python -m sandbox`: the whole offline world in one process."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from sandbox import certificates, clusters, saving, world
from sandbox.azure import AzureSandbox
from sandbox.certificates import Certificates
from sandbox.credentials import Credentials
from sandbox.entra import EntraSandbox
from sandbox.handout import Handout
from sandbox.kubernetes import Cluster
from sandbox.notebooks import Notebooks
from sandbox.notices.post import Post
from sandbox.notices.smtp import MailServer, serve_mail
from sandbox.saving import Part
from sandbox.serving import Served, listen, port_of, serve
from sandbox.world import World


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; print `sandbox ready` when every port answers."""
    options = _parser().parse_args(arguments)
    try:
        asyncio.run(_run(options))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"sandbox: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="where state, certificates and secrets are kept",
    )
    parser.add_argument(
        "--port-kubernetes",
        type=int,
        default=0,
        help="port of the first cluster, others follow; 0: free",
    )
    parser.add_argument(
        "--port-entra", type=int, default=0, help="port of Entra ID and Graph; 0: free"
    )
    parser.add_argument(
        "--port-sign-in",
        type=int,
        help="serve the sign-in page here without TLS as well, for browsers that do not know the CA; 0: free",
    )
    parser.add_argument(
        "--port-azure",
        type=int,
        default=0,
        help="port of Azure Resource Manager and its prices; 0: free",
    )
    parser.add_argument(
        "--port-smtp", type=int, default=0, help="port of the mail server; 0: free"
    )
    parser.add_argument(
        "--port-inbox",
        type=int,
        default=0,
        help="port of the inbox, plain HTTP for browsers; 0: free",
    )
    parser.add_argument(
        "--world", type=Path, help="JSON file with people, groups and clusters"
    )
    parser.add_argument(
        "--forget",
        action="store_true",
        help="save nothing: the next start finds the state that this one found",
    )
    return parser


async def _run(options: argparse.Namespace) -> None:
    stop, ready = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    data = options.data.resolve()
    shown = certificates.ensure(data)
    served, parts, post = _build(options, data, shown)
    notebooks = Notebooks(
        [part for part in parts.values() if isinstance(part, Cluster)]
    )
    if options.forget:
        parts.clear()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve_mail(MailServer(post.sandbox.inbox), post.smtp, stop))
        tasks.create_task(serve(served, ready, stop))
        tasks.create_task(notebooks.serve(stop))
        tasks.create_task(saving.keep_saving(data, parts, stop))
        await ready.wait()
        sys.stdout.write("sandbox ready\n")
        sys.stdout.flush()
    # Requests that were open when the last save began may have changed something since.
    saving.save(data, parts)


def _build(
    options: argparse.Namespace, data: Path, shown: Certificates
) -> tuple[list[Served], dict[str, Part], Post]:
    contents = world.load(options.world) if options.world else world.sample()
    credentials = Credentials.open(data / "credentials.json")
    ca = shown.ca.read_text(encoding="ascii")
    handout = Handout(data, credentials, ca)
    entra, served = _entra(options, data, shown, contents, credentials)
    post = Post.open(
        data, shown, credentials, smtp=options.port_smtp, inbox=options.port_inbox
    )
    served += post.served
    parts: dict[str, Part] = {"entra": entra, "notices": post.sandbox.inbox}
    described, running = {}, dict[str, Cluster]()
    for number, spec in enumerate(contents.clusters):
        name = f"kubernetes-{spec.name}"
        cluster = clusters.build(
            spec, entra.directory, credentials, ca, saving.read(data, name)
        )
        socket = listen(
            options.port_kubernetes + number if options.port_kubernetes else 0
        )
        server = f"https://127.0.0.1:{port_of(socket)}"
        served.append(Served(cluster.app, socket, shown))
        parts[name] = running[spec.name] = cluster
        described[spec.name] = handout.cluster(spec, server, entra.directory)
    told = {"entra": entra.describe(), "notices": post.described}
    if contents.azure is not None and entra.daemon is not None:
        socket = listen(options.port_azure)
        parts["azure"] = azure = AzureSandbox(
            contents.azure,
            f"https://localhost:{port_of(socket)}",
            entra,
            running,
            contents.clusters,
            admin_secret=credentials.secret("azure/admin"),
            stored=saving.read(data, "azure"),
        )
        served.append(Served(azure.app, socket, shown))
        told["azure"] = azure.describe(
            handout.federated_token(entra.daemon.federated_token())
        )
    handout.summary(described, **told)
    return served, parts, post


def _entra(
    options: argparse.Namespace,
    data: Path,
    shown: Certificates,
    contents: World,
    credentials: Credentials,
) -> tuple[EntraSandbox, list[Served]]:
    socket = listen(options.port_entra)
    plain = None if options.port_sign_in is None else listen(options.port_sign_in)
    entra = EntraSandbox(
        contents,
        f"https://localhost:{port_of(socket)}",
        client_secret=credentials.secret("entra/client"),
        admin_secret=credentials.secret("entra/admin"),
        azure_secret=credentials.secret("entra/azure"),
        key_file=data / "entra-signing-key.pem",
        browser_base=None if plain is None else f"http://localhost:{port_of(plain)}",
    )
    if (state := saving.read(data, "entra")) is not None:
        entra.restore(state)
    served = [Served(entra.app, socket, shown)]
    if plain is not None:
        served.append(Served(entra.browser_app, plain, None))
    return entra, served


if __name__ == "__main__":
    sys.exit(main())
