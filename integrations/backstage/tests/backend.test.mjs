// The real backend of backend.mjs, in front of a small stand-in for the portal.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { allocation, fakePortal, page, team, tenancy } from '../catalog-backend-module-quartermaster/tests/fake.mjs';

const CATALOG_TOKEN = 'catalog-token-of-the-tests';
const TASK = 'quartermaster-teams';

const invoked = [];
let portal;
let backend;
let base;
let user;
let teams = [team('vision', { entra_group: '22222222-2222-4222-8222-222222222222' }), team('speech')];

const LIST = '/api/backstage/.backstage/actions/v1/actions';
let refusal;

const texts = (...names) => Object.fromEntries(names.map(name => [name, { type: 'string' }]));

const action = (name, input, output) => ({
  id: `quartermaster:${name}`,
  name,
  title: name,
  description: name,
  pluginId: 'quartermaster',
  attributes: { readOnly: false, destructive: false, idempotent: true },
  schema: {
    input: { type: 'object', properties: input, additionalProperties: false },
    output: { type: 'object', properties: output },
  },
});

const ACTIONS = [
  action(
    'create-request',
    { ...texts('idempotency_key', 'team', 'flavor', 'purpose', 'until', 'reason'), gpus: { type: 'integer' } },
    { ...texts('page', 'stage'), id: { type: 'integer' } },
  ),
  action(
    'start-run',
    { ...texts('idempotency_key', 'template', 'title', 'flavor'), tenancy: { type: 'integer' }, values: { type: 'object' } },
    { ...texts('page', 'state'), id: { type: 'integer' } },
  ),
];

function keep(request) {
  const body = [];
  request.on('data', chunk => body.push(chunk)).on('end', () => invoked.push(JSON.parse(Buffer.concat(body))));
}

const refused = sentence => ({
  status: 422,
  headers: { 'Content-Type': 'application/json' },
  body: {
    error: { name: 'InputError', message: sentence },
    request: {},
    response: { statusCode: `422: ${sentence}` },
  },
});

function answer(url, request) {
  switch (url.pathname) {
    case '/api/v1/teams/':
      return page(teams);
    case '/api/v1/allocations/':
      return page([allocation(7, 'vision', { tenancy: 3 })]);
    case '/api/v1/tenancies/':
      return page([tenancy(3, 'vision')]);
    case LIST:
      return { body: { actions: ACTIONS } };
    case `${LIST}/quartermaster%3Acreate-request/invoke`:
      keep(request);
      if (refusal) {
        return refused(refusal);
      }
      return { body: { output: { id: 17, page: 'https://gpus.example.com/requests/17/', stage: 'approved' } } };
    case `${LIST}/quartermaster%3Astart-run/invoke`:
      keep(request);
      return { body: { output: { id: 5, page: 'https://gpus.example.com/runs/5', state: 'waiting' } } };
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
    // It may be started from anywhere.
    cwd: tmpdir(),
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
  assert.ok(held.relations.some(({ type, targetRef }) => type === 'dependsOn' && targetRef === 'resource:default/gpu-namespace-3'));
  assert.equal((await entity('system', 'gpu-team-speech')).spec.owner, 'group:default/speech');
});

test('a team that is gone leaves the catalog', async () => {
  await until('the team', () => entity('system', 'gpu-team-speech'));
  teams = teams.slice(0, 1);
  await call('POST', `catalog/.backstage/scheduler/v1/tasks/${TASK}/trigger`);
  await until('the team gone', async () => !(await entity('system', 'gpu-team-speech')));
});

/** What becomes of a template that is filled in: the task's id, how it ended, and what it said last. */
async function filledIn(template, values) {
  await until('the template', () => entity('template', template));
  await until('the namespace', () => entity('resource', 'gpu-namespace-3'));
  const { id } = await json('POST', 'scaffolder/v2/tasks', { templateRef: `template:default/${template}`, values });
  assert.ok(id);
  const { status } = await until('the task done', async () => {
    const found = await json('GET', `scaffolder/v2/tasks/${id}`);
    return ['completed', 'failed'].includes(found.status) && found;
  });
  const events = await json('GET', `scaffolder/v2/tasks/${id}/events`);
  return { id, status, events, last: events.find(({ type }) => type === 'completion').body };
}

const GPUS = {
  team: 'system:default/gpu-team-vision',
  flavor: 'training-eastus/a100',
  gpus: 2,
  purpose: 'training',
  until: '2030-01-31',
};

test('a template asks for GPUs in the name of who filled it in', async () => {
  const { id, status, events, last } = await filledIn('request-gpus', GPUS);
  assert.equal(status, 'completed', JSON.stringify(events, null, 2));
  assert.deepEqual(invoked.at(-1), {
    ...GPUS,
    idempotency_key: `backstage-${id}`,
    team: 'vision',
    until: '2030-01-31T23:59:00Z',
  });
  assert.deepEqual(last.output.links[0], {
    title: 'Request 17 in Quartermaster',
    url: 'https://gpus.example.com/requests/17/',
    icon: 'dashboard',
  });
  const sent = portal.calls.findLast(({ path }) => path.endsWith('/invoke'));
  const claims = JSON.parse(Buffer.from(sent.headers.authorization.split('.')[1], 'base64url'));
  assert.equal(claims.aud, 'quartermaster');
  assert.equal(JSON.parse(Buffer.from(claims.obo.split('.')[1], 'base64url')).sub, 'user:default/alice');
});

test('a template starts a training run', async () => {
  const { id, status, events, last } = await filledIn('start-training-run', {
    namespace: 'resource:default/gpu-namespace-3',
    template: 'single-node',
    title: 'Fine-tuning',
    flavor: 'a100',
    gpus: 2,
    minutes: 60,
    image: 'registry.example.com/train:1',
    program: ['train.py', '--lr=3e-5'],
  });
  assert.equal(status, 'completed', JSON.stringify(events, null, 2));
  assert.deepEqual(invoked.at(-1), {
    idempotency_key: `backstage-${id}`,
    tenancy: 3,
    template: 'single-node',
    title: 'Fine-tuning',
    flavor: 'a100',
    values: { image: 'registry.example.com/train:1', program: ['train.py', '--lr=3e-5'], gpus: 2, minutes: 60 },
  });
  assert.equal(last.output.links[0].url, 'https://gpus.example.com/runs/5');
});

test('who is refused is told why', async () => {
  refusal = 'The team holds 8 GPUs at most.';
  const { status, last } = await filledIn('request-gpus', GPUS);
  assert.equal(status, 'failed');
  assert.match(last.error.message, /422: The team holds 8 GPUs at most\./);
  const { isError, content } = await rpc('tools/call', { name: 'quartermaster.create-request', arguments: {} });
  assert.ok(isError);
  assert.deepEqual(content, [{ type: 'text', text: `InputError: ${refusal}` }]);
  refusal = undefined;
});

test('the actions are tools of MCP', async () => {
  const { tools } = await rpc('tools/list');
  assert.deepEqual(tools.map(({ name }) => name), ['quartermaster.create-request', 'quartermaster.start-run']);
  const { isError, structuredContent } = await rpc('tools/call', {
    name: 'quartermaster.create-request',
    arguments: { team: 'vision' },
  });
  assert.ok(!isError);
  assert.equal(structuredContent.id, 17);
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
