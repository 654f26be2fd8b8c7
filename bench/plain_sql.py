"""What a budget needs of a database and no more: the floor of B8, for the bare SQL and for the bare REST view."""

import hashlib

TABLES = """
CREATE TABLE token (digest text PRIMARY KEY, person bigint NOT NULL);
CREATE TABLE budget (
    id bigserial PRIMARY KEY, held bigint NOT NULL DEFAULT 0, paid bigint NOT NULL, CHECK (held <= paid));
CREATE TABLE ask (id bigserial PRIMARY KEY, budget bigint NOT NULL REFERENCES budget, person bigint NOT NULL,
    gpus bigint NOT NULL, until timestamptz NOT NULL, reason text NOT NULL, is_granted boolean NOT NULL,
    at timestamptz NOT NULL DEFAULT now());
"""
SPEND = "UPDATE budget SET held = held + %s WHERE id = %s AND held + %s <= paid"
KEEP = """
INSERT INTO ask (budget, person, gpus, until, reason, is_granted) VALUES (%s, %s, %s, %s, %s, %s) RETURNING id
"""
BUDGET = "INSERT INTO budget (paid) VALUES (%s) RETURNING id"
TOKEN = "INSERT INTO token (digest, person) VALUES (%s, %s) ON CONFLICT DO NOTHING"
KNOWN = "SELECT person FROM token WHERE digest = %s"


def digest_of(secret: str) -> str:
    """How a token is kept."""
    return hashlib.sha256(secret.encode()).hexdigest()
