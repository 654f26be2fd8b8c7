-- The portal's two logins, made once by an administrator of PostgreSQL 14 or newer in the portal's database, with a psql
-- of 15 or newer:
--
--   quartermaster_owner  owns the tables; `manage.py migrate` alone signs in with it
--   quartermaster_app    reads and writes rows; web, worker and beat sign in with it
--
-- The second owns nothing, so it can neither switch a trigger off nor change what is only added to. What it may do
-- with each table is granted by `manage.py migrate`. Run again, this sets both passwords anew. By hand:
--
--   POSTGRES_OWNER_PASSWORD=… POSTGRES_APP_PASSWORD=… psql --set ON_ERROR_STOP=1 --dbname quartermaster --file roles.sql

\set ON_ERROR_STOP 1
\getenv owner_password POSTGRES_OWNER_PASSWORD
\getenv app_password POSTGRES_APP_PASSWORD

SELECT format('CREATE ROLE %I', name)
FROM unnest(ARRAY['quartermaster_owner', 'quartermaster_app']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec

ALTER ROLE quartermaster_owner LOGIN PASSWORD :'owner_password';
ALTER ROLE quartermaster_app LOGIN PASSWORD :'app_password';

-- A new role may do nothing of this. What one of before may only a superuser can take away, which the administrator of a
-- hosted PostgreSQL is not; it has to be a member of the owner to give it the database.
SELECT rolsuper AS is_superuser FROM pg_roles WHERE rolname = current_user
\gset
\if :is_superuser
ALTER ROLE quartermaster_owner NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
ALTER ROLE quartermaster_app NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
\else
GRANT quartermaster_owner TO CURRENT_USER;
\endif

SELECT format('ALTER DATABASE %I OWNER TO quartermaster_owner', current_database())
\gexec
ALTER SCHEMA public OWNER TO quartermaster_owner;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
