// A backend of Backstage as small as the portal needs one: signing in, the catalog with the portal's module, the
// scaffolder, the MCP tools, and notifications. What is in it comes from app-config.yaml beside this file, which takes the rest from the
// environment. Prints one line that begins with READY, and ends on SIGTERM.
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createBackend } from '@backstage/backend-defaults';

const here = path => fileURLToPath(new URL(path, import.meta.url));

const needed = ['BACKSTAGE_PORT', 'BACKSTAGE_CATALOG_TOKEN', 'QUARTERMASTER_URL', 'QUARTERMASTER_TOKEN'];
const missing = needed.filter(name => !process.env[name]);
if (missing.length) {
  console.error(`Set ${missing.join(', ')}.`);
  process.exit(2);
}
if (!existsSync(here('../catalog-backend-module-quartermaster/dist/index.js'))) {
  console.error('The module is not built: run npm run build.');
  process.exit(2);
}
process.env.BACKSTAGE_CATALOG_FILE = resolve(process.env.BACKSTAGE_CATALOG_FILE || here('catalog.yaml'));
// Where nobody has it, nobody is notified.
process.env.BACKSTAGE_NOTICES_TOKEN ||= randomUUID();
process.env.BACKSTAGE_TEMPLATES = here('../templates');
process.argv.push('--config', here('app-config.yaml'));
// Backstage looks for its packages from here upwards, wherever it was started.
process.chdir(here('..'));

const backend = createBackend();
backend.add(import('@backstage/plugin-auth-backend'));
backend.add(import('@backstage/plugin-auth-backend-module-guest-provider'));
backend.add(import('@backstage/plugin-catalog-backend'));
backend.add(import('@backstage/plugin-catalog-backend-module-scaffolder-entity-model'));
backend.add(import('@quartermaster/backstage-plugin-catalog-backend-module-quartermaster'));
backend.add(import('@backstage/plugin-scaffolder-backend'));
backend.add(import('@backstage/plugin-mcp-actions-backend'));
backend.add(import('@backstage/plugin-notifications-backend'));

await backend.start();
console.log(`READY http://127.0.0.1:${process.env.BACKSTAGE_PORT}`);
