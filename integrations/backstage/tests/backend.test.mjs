// The real backend of backend.mjs, in front of a small stand-in for the portal.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { allocation, fakePortal, page, team } from '../catalog-backend-module-quartermaster/tests/fake.mjs';

const CATALOG_TOKEN = 'catalog-token-of-the-tests';
const TASK = 'quartermaster-teams';

const invoked = [];
let portal;
let backend;
let base;
let user;
let teams = [team('vision', { entra_group: '22222222-2222-4222-8222-222222222222' }), team('speech')];

const texts = (...names) => ({ type: 'object', properties: Object.fromEntries(names.map(name => [name, { type: 'string' }])) });

const ACTIONS = [
  {
    id: 'quartermaster:create-request',
    name: 'create-request',
    title: 'Ask',
    description: 'Asks.',
    pluginId: 'quartermaster',
    attributes: { readOnly: false, destructive: false, idempotent: true },
    schema: {
      input: {
        ...texts('idempotency_key', 'team', 'flavor', 'purpose', 'until', 'reason'),
        required: ['idempotency_key', 'team', 'flavor', 'gpus', 'purpose', 'until'],
      },
      output: texts('id', 'url', 'stage'),
    },
  },
];
ACTIONS[0].schema.input.properties.gpus = { type: 'integer' };

function answer(url, request) {
  switch (url.pathname) {
    case '/api/v1/teams/':
      return page(teams);
    case '/api/v1/allocations/':
      return page([allocation(7, 'vision')]);
    case '/backstage/.backstage/actions/v1/actions':
      return { body: { actions: ACTIONS } };
    case '/backstage/.backstage/actions/v1/actions/quartermaster%3Acreate-request/invoke': {
      const body = [];
      request.on('data', chunk => body.push(chunk)).on('end', () => invoked.push(JSON.parse(Buffer.concat(body))));
      return { body: { output: { id: '17', url: 'https://gpus.example.com/requests/17/', stage: 'approved' } } };
    }
    default:
      return undefined;
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function call(method, path, body, token = user) {
  const response = await fetch(`${base}/api/${path}`, {
    method,
    headers: {
      ...(token && { Authorization: `Bearer ${token}` }),
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    },
    body: body && JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const json = async (...asked) => JSON.parse((await call(...asked)).text);

async function until(what, done) {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(250)) {
    const value = await done();
    if (value) {
      return value;
    }
  }
  throw new Error(`not within 30 s: ${what}`);
}

const entity = async (kind, name) => {
  const { status, text } = await call('GET', `catalog/entities/by-name/${kind}/default/${name}`);
  return status === 200 && JSON.parse(text);
};

const rpc = async (method, params) => {
  const { text } = await call('POST', 'mcp-actions/v1', { jsonrpc: '2.0', id: 1, method, params });
  return JSON.parse(text.split('\n').find(line => line.startsWith('data: ')).slice('data: '.length)).result;
};

before(async () => {
  portal = await fakePortal(answer);
  const port = await freePort();
  base = `http://127.0.0.1:${port}`;
  backend = spawn(process.execPath, [fileURLToPath(new URL('backend.mjs', import.meta.url))], {
    env: {
      ...process.env,
      BACKSTAGE_PORT: String(port),
      BACKSTAGE_CATALOG_TOKEN: CATALOG_TOKEN,
      QUARTERMASTER_URL: portal.baseUrl,
      QUARTERMASTER_TOKEN: 'qm_reads',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = [];
  await new Promise((resolve, reject) => {
    createInterface({ input: backend.stdout }).on('line', line => {
      lines.push(line);
      if (line.startsWith('READY ')) {
        resolve();
      }
    });
    backend.once('exit', code => reject(new Error(`ended with ${code}:\n${lines.join('\n')}`)));
  });
  user = (await json('GET', 'auth/guest/refresh', undefined, null)).backstageIdentity.token;
});

after(async () => {
  portal.close();
  if (backend.exitCode === null) {
    backend.kill('SIGTERM');
    await once(backend, 'exit');
  }
});

test('the teams are in the catalog, owned by the group of the same group in Entra', async () => {
  // The group may come after the first sweep.
  const system = await until('an owned system', async () => {
    const found = await entity('system', 'gpu-team-vision');
    if (found && found.spec.owner === 'group:default/vision-people') {
      return found;
    }
    await call('POST', `catalog/.backstage/scheduler/v1/tasks/${TASK}/trigger`);
    return undefined;
  });
  assert.equal(system.metadata.annotations['quartermaster.dev/team'], 'vision');
  const held = await until('what it holds', () => entity('resource', 'gpu-allocation-7'));
  assert.ok(held.relations.some(({ type, targetRef }) => type === 'partOf' && targetRef === 'system:default/gpu-team-vision'));
  assert.equal((await entity('system', 'gpu-team-speech')).spec.owner, 'group:default/speech');
});

test('a team that is gone leaves the catalog', async () => {
  await until('the team', () => entity('system', 'gpu-team-speech'));
  teams = teams.slice(0, 1);
  await call('POST', `catalog/.backstage/scheduler/v1/tasks/${TASK}/trigger`);
  await until('the team gone', async () => !(await entity('system', 'gpu-team-speech')));
});

test('the template asks for GPUs in the name of who filled it in', async () => {
  await until('the template', () => entity('template', 'request-gpus'));
  await until('the team', () => entity('system', 'gpu-team-vision'));
  const { id } = await json('POST', 'scaffolder/v2/tasks', {
    templateRef: 'template:default/request-gpus',
    values: {
      team: 'system:default/gpu-team-vision',
      flavor: 'training-eastus/a100',
      gpus: 2,
      purpose: 'training',
      until: '2030-01-31',
    },
  });
  assert.ok(id);
  const task = await until('the task done', async () => {
    const found = await json('GET', `scaffolder/v2/tasks/${id}`);
    return ['completed', 'failed'].includes(found.status) && found;
  });
  const events = await json('GET', `scaffolder/v2/tasks/${id}/events`);
  assert.equal(task.status, 'completed', JSON.stringify(events, null, 2));
  assert.deepEqual(invoked.at(-1), {
    idempotency_key: `backstage-${id}`,
    team: 'vision',
    flavor: 'training-eastus/a100',
    gpus: 2,
    purpose: 'training',
    until: '2030-01-31T23:59:00Z',
  });
  const { output } = events.find(({ type }) => type === 'completion').body;
  assert.deepEqual(output.links[0], {
    title: 'Request 17 in Quartermaster',
    url: 'https://gpus.example.com/requests/17/',
    icon: 'dashboard',
  });
  const sent = portal.calls.findLast(({ path }) => path.endsWith('/invoke'));
  const claims = JSON.parse(Buffer.from(sent.headers.authorization.split('.')[1], 'base64url'));
  assert.equal(claims.aud, 'quartermaster');
  assert.equal(JSON.parse(Buffer.from(claims.obo.split('.')[1], 'base64url')).sub, 'user:default/alice');
});

test('the actions are tools of MCP', async () => {
  const { tools } = await rpc('tools/list');
  assert.deepEqual(tools.map(({ name }) => name), ['quartermaster.create-request']);
  const { isError, structuredContent } = await rpc('tools/call', {
    name: 'quartermaster.create-request',
    arguments: { team: 'vision' },
  });
  assert.ok(!isError);
  assert.equal(structuredContent.id, '17');
});

test('the token of the portal reads the catalog, and nothing else', async () => {
  const alice = await json('GET', 'catalog/entities/by-name/user/default/alice', undefined, CATALOG_TOKEN);
  assert.equal(alice.metadata.annotations['graph.microsoft.com/user-id'], '11111111-1111-4111-8111-111111111111');
  assert.equal((await call('GET', 'catalog/entities/by-name/user/default/bob', undefined, CATALOG_TOKEN)).status, 404);
  assert.equal((await call('GET', 'scaffolder/v2/actions', undefined, CATALOG_TOKEN)).status, 403);
});

test('it ends when it is told to', async () => {
  backend.kill('SIGTERM');
  const [code] = await once(backend, 'exit');
  assert.equal(code, 0);
});
