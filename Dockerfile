# syntax=docker/dockerfile:1
FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /app
COPY requirements/base.txt requirements/base.txt
RUN python -m venv /venv && /venv/bin/pip install --no-deps --require-hashes -r requirements/base.txt && /venv/bin/pip check
COPY manage.py ./
COPY portal portal
COPY checks checks
COPY insights insights
COPY workloads workloads
COPY offboarding offboarding
COPY onboarding onboarding
COPY approvals approvals
COPY catalogue catalogue
COPY policy policy
COPY allocations allocations
COPY manual manual
COPY notebooks notebooks
COPY capacity capacity
COPY provisioning provisioning
COPY reconciling reconciling
COPY fleet fleet
COPY notices notices
COPY accounts accounts
COPY web web
COPY ui ui
COPY connectors connectors
COPY audit audit
COPY templates templates
COPY static static
# What Help shows (portal/guide.py).
COPY docs docs
RUN python -m compileall -q /app
# Static files are part of the image. The values below satisfy the settings for this one command and are not kept.
RUN QM_SECRET_KEY=build QM_DATABASE_URL=sqlite:////tmp/none QM_BROKER_URL=redis://none QM_CACHE_URL=redis://none \
    QM_ENTRA_AUTHORITY=https://none.invalid/none QM_ENTRA_TENANT_ID=none QM_ENTRA_CLIENT_ID=none \
    QM_ENTRA_CLIENT_SECRET=none QM_DATA_DIR=/app/var /venv/bin/python manage.py collectstatic --noinput

FROM python:3.11-slim
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 QM_DATA_DIR=/app/var
RUN useradd --system --uid 10001 --home-dir /app --shell /usr/sbin/nologin quartermaster
WORKDIR /app
COPY --from=build /venv /venv
COPY --from=build /app /app
USER 10001
EXPOSE 8000
CMD ["gunicorn", "-k", "portal.web_worker.BoundedWorker", "--worker-connections", "2000", "--no-control-socket", "--bind", "0.0.0.0:8000", "--workers", "2", "--worker-tmp-dir", "/tmp", "portal.asgi:application"]
