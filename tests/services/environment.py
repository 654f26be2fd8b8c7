"""The environment the portal starts with in tests: complete, and harmless."""

import os
import tempfile

POSTGRES_USER = "quartermaster"
TENANT = "11111111-1111-4111-8111-111111111111"


def addresses(*, postgres_port: int, redis_port: int, worker: int) -> dict[str, str]:
    """The service addresses of one test process; every xdist worker has two Redis databases of its own."""
    redis = f"redis://127.0.0.1:{redis_port}"
    return {
        "QM_DATABASE_URL": f"postgresql://{POSTGRES_USER}@127.0.0.1:{postgres_port}/portal",
        "QM_BROKER_URL": f"{redis}/{2 * worker}",
        "QM_CACHE_URL": f"{redis}/{2 * worker + 1}",
    }


def harmless() -> dict[str, str]:
    """Every other variable the portal needs to start; port 9 answers nobody."""
    return {
        "QM_DEMO": "true",  # static files are served from where they lie, without collecting them
        "QM_SECRET_KEY": "tests-only-" + "k" * 50,
        "QM_ALLOWED_HOSTS": '["testserver", "127.0.0.1", "localhost"]',
        "QM_PUBLIC_URL": "http://testserver",
        "QM_ENTRA_AUTHORITY": f"https://localhost:9/{TENANT}",
        "QM_ENTRA_TENANT_ID": TENANT,
        "QM_ENTRA_CLIENT_ID": "22222222-2222-4222-8222-222222222222",
        "QM_ENTRA_CLIENT_SECRET": "tests-only",
        "QM_GRAPH_URL": "https://localhost:9/v1.0",
    }


def fill() -> None:
    """Complete this process's environment with values under which the portal can be imported."""
    values = harmless() | addresses(postgres_port=9, redis_port=9, worker=0)
    values["QM_DATA_DIR"] = tempfile.gettempdir()
    for name, value in values.items():
        os.environ.setdefault(name, value)
