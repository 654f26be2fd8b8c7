import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  FieldFormatEntityPolicy,
  NoForeignRootFieldsEntityPolicy,
  SchemaValidEntityPolicy,
  resourceEntityV1alpha1Validator,
  systemEntityV1alpha1Validator,
} from '@backstage/catalog-model';
import { Portal } from '../dist/portal.js';
import { QuartermasterProvider } from '../dist/provider.js';
import { allocation, fakePortal, keptLog, page, team, tenancy } from './fake.mjs';

const VISION_GROUP = 'AAAAAAAA-0000-0000-0000-000000000001';

const group = (name, id, namespace) => ({
  apiVersion: 'backstage.io/v1alpha1',
  kind: 'Group',
  metadata: { name, namespace, annotations: { 'graph.microsoft.com/group-id': id } },
});

async function provided(t, answers, groups = []) {
  const portal = await fakePortal(url => ({ [PLACES]: () => page([]), ...answers })[url.pathname]?.(url));
  t.after(portal.close);
  const log = keptLog();
  const mutations = [];
  const run = {};
  const provider = new QuartermasterProvider({
    portal: new Portal({ baseUrl: portal.baseUrl, token: 'qm_secret', logger: log }),
    auth: { getOwnServiceCredentials: async () => ({}) },
    catalog: {
      getEntities: async () => {
        if (groups instanceof Error) {
          throw groups;
        }
        return { items: groups };
      },
    },
    logger: log,
    taskRunner: { run: async task => void Object.assign(run, task) },
  });
  await provider.connect({ applyMutation: async mutation => void mutations.push(mutation), refresh: async () => {} });
  await run.fn(new AbortController().signal);
  return { portal, log, mutations, run };
}

const TEAMS = '/api/v1/teams/';
const HELD = '/api/v1/allocations/';
const PLACES = '/api/v1/tenancies/';

test('a team is a System, and its namespaces and what it holds are Resources of it', async t => {
  const { portal, log, mutations, run } = await provided(
    t,
    {
      [TEAMS]: () => page([team('vision', { entra_group: VISION_GROUP.toLowerCase() }), team('speech')]),
      [HELD]: () => page([allocation(7, 'vision', { tenancy: 3 }), allocation(8, 'vision', { tenancy: 4 })]),
      [PLACES]: () => page([tenancy(3, 'vision'), tenancy(4, 'vision', { presence: 'leaving' })]),
    },
    [group('vision-people', VISION_GROUP)],
  );
  assert.equal(run.id, 'quartermaster-teams');
  assert.deepEqual(portal.calls.map(({ path, query }) => [path, query]), [
    [TEAMS, { limit: '100' }],
    [HELD, { held: 'true', limit: '100' }],
    [PLACES, { limit: '100' }],
  ]);
  const [{ type, entities }] = mutations;
  assert.equal(type, 'full');
  assert.ok(entities.every(({ locationKey }) => locationKey === `quartermaster:${portal.baseUrl}`));
  const [vision, speech, place, held, other] = entities.map(({ entity }) => entity);
  const visionPage = `${portal.baseUrl}/teams/vision/`;
  const managed = {
    'backstage.io/managed-by-location': `url:${visionPage}`,
    'backstage.io/managed-by-origin-location': `url:${visionPage}`,
    'backstage.io/view-url': visionPage,
    'quartermaster.dev/team': 'vision',
  };
  assert.deepEqual(vision, {
    apiVersion: 'backstage.io/v1alpha1',
    kind: 'System',
    metadata: {
      name: 'gpu-team-vision',
      title: 'Vision',
      description: 'What the team Vision holds of GPUs and the like.',
      annotations: managed,
      tags: ['gpu', 'standard'],
      links: [
        { url: visionPage, title: 'In Quartermaster', icon: 'dashboard' },
        { url: `${portal.baseUrl}/requests/new?team=vision`, title: 'Request GPUs' },
      ],
    },
    spec: { owner: 'group:default/vision-people', type: 'gpu-team' },
  });
  assert.equal(speech.spec.owner, 'group:default/speech');
  assert.deepEqual(held, {
    apiVersion: 'backstage.io/v1alpha1',
    kind: 'Resource',
    metadata: {
      name: 'gpu-allocation-7',
      title: '2 × A100',
      description: 'Training East US',
      annotations: { ...managed, 'quartermaster.dev/allocation': '7' },
      tags: ['gpus'],
      links: [{ url: visionPage, title: 'In Quartermaster', icon: 'dashboard' }],
    },
    spec: {
      owner: 'group:default/vision-people',
      type: 'gpu-allocation',
      system: 'system:default/gpu-team-vision',
      dependsOn: ['resource:default/gpu-namespace-3'],
    },
  });
  assert.deepEqual(place, {
    apiVersion: 'backstage.io/v1alpha1',
    kind: 'Resource',
    metadata: {
      name: 'gpu-namespace-3',
      title: 'vision-dev on training-eastus',
      annotations: { ...managed, 'quartermaster.dev/tenancy': '3', 'backstage.io/kubernetes-namespace': 'vision-dev' },
      tags: ['dev'],
      links: [{ url: visionPage, title: 'In Quartermaster', icon: 'dashboard' }],
    },
    spec: { owner: 'group:default/vision-people', type: 'gpu-namespace', system: 'system:default/gpu-team-vision' },
  });
  assert.equal(other.spec.dependsOn, undefined);
  assert.match(log.lines.at(-1), /^info: Quartermaster: 2 teams with 3 namespaces and allocations, in \d+ ms$/);
});

test('the catalog itself takes the entities', async t => {
  const { mutations } = await provided(t, {
    [TEAMS]: () => page([team('vision'), team('a'.repeat(40), { tier: 'No Tag' })]),
    [HELD]: () => page([allocation(7, 'vision', { where: '', offering: 'no_tag', tenancy: 3 })]),
    [PLACES]: () => page([tenancy(3, 'vision')]),
  });
  for (const { entity } of mutations[0].entities) {
    for (const policy of [new SchemaValidEntityPolicy(), new NoForeignRootFieldsEntityPolicy(), new FieldFormatEntityPolicy()]) {
      await policy.enforce(entity);
    }
    const validator = entity.kind === 'System' ? systemEntityV1alpha1Validator : resourceEntityV1alpha1Validator;
    assert.ok(await validator.check(entity));
  }
});

test('a page that fails leaves the catalog as it is', async t => {
  const { log, mutations } = await provided(t, {
    [TEAMS]: url =>
      url.searchParams.get('cursor')
        ? { status: 500, body: { detail: 'Something went wrong.' } }
        : page([team('vision')], '/api/v1/teams/?cursor=two'),
    [HELD]: () => page([]),
  });
  assert.deepEqual(mutations, []);
  assert.deepEqual(log.lines, ['error: Quartermaster: the catalog stays as it is: teams: 500: Something went wrong.']);
});

test('a list of holdings that fails leaves the catalog as it is', async t => {
  const { log, mutations } = await provided(t, {
    [TEAMS]: () => page([team('vision')]),
    [HELD]: () => ({ status: 403, body: { detail: 'You may not.' } }),
  });
  assert.deepEqual(mutations, []);
  assert.match(log.lines[0], /allocations: 403: You may not\./);
});

test('owners that cannot be found out leave the catalog as it is', async t => {
  const { log, mutations } = await provided(
    t,
    { [TEAMS]: () => page([team('vision')]), [HELD]: () => page([]) },
    new Error('the catalog is away'),
  );
  assert.deepEqual(mutations, []);
  assert.match(log.lines[0], /the catalog is away/);
});

test('what a team holds that was not in the list of teams waits for the next sweep', async t => {
  const { mutations } = await provided(t, {
    [TEAMS]: () => page([team('vision')]),
    [HELD]: () => page([allocation(8, 'new-team')]),
  });
  assert.deepEqual(mutations[0].entities.map(({ entity }) => entity.metadata.name), ['gpu-team-vision']);
});
