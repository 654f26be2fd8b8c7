import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Portal } from '../dist/portal.js';
import { fakePortal, keptLog, page, team } from './fake.mjs';

const never = new AbortController().signal;

async function reading(t, answer, more = {}) {
  const portal = await fakePortal(answer);
  t.after(portal.close);
  const log = keptLog();
  const reader = new Portal({ baseUrl: `${portal.baseUrl}/`, token: 'qm_secret', logger: log, ...more });
  return { portal, log, list: (signal = never) => reader.list('teams', {}, signal) };
}

test('follows the cursor of next, on the address it knows', async t => {
  const { portal, list } = await reading(t, url =>
    url.searchParams.get('cursor') === 'c+2'
      ? page([team('vision')])
      : page([team('speech')], 'https://elsewhere.example.com/api/v1/teams/?cursor=c%2B2&limit=100'),
  );
  assert.deepEqual((await list()).map(({ slug }) => slug), ['speech', 'vision']);
  assert.deepEqual(portal.calls.map(({ path, query }) => [path, query]), [
    ['/api/v1/teams/', { limit: '100' }],
    ['/api/v1/teams/', { limit: '100', cursor: 'c+2' }],
  ]);
  assert.equal(portal.calls[0].headers.authorization, 'Bearer qm_secret');
});

test('waits as long as the portal says and asks again', async t => {
  let asked = 0;
  const { portal, log, list } = await reading(t, () =>
    ++asked < 3
      ? { status: asked === 1 ? 429 : 503, headers: { 'Retry-After': '0' }, body: { detail: 'Too many calls.' } }
      : page([team('vision')]),
  );
  assert.equal((await list()).length, 1);
  assert.equal(portal.calls.length, 3);
  assert.deepEqual(log.lines, [
    'info: Quartermaster: teams: 429: Too many calls.; again in 0 s',
    'info: Quartermaster: teams: 503: Too many calls.; again in 0 s',
  ]);
});

test('gives up after three tries', async t => {
  const { portal, list } = await reading(t, () => ({ status: 503, headers: { 'Retry-After': '0' }, body: {} }));
  await assert.rejects(list(), /^Error: teams: 503$/);
  assert.equal(portal.calls.length, 3);
});

test('leaves a long wait to the next sweep', async t => {
  const { portal, list } = await reading(t, () => ({ status: 429, headers: { 'Retry-After': '3600' }, body: {} }));
  await assert.rejects(list(), /429/);
  assert.equal(portal.calls.length, 1);
});

test('says in the words of the portal why not', async t => {
  const { portal, list } = await reading(t, () => ({ status: 401, body: { detail: 'The token has ended.' } }));
  await assert.rejects(list(), /^Error: teams: 401: The token has ended\.$/);
  assert.equal(portal.calls.length, 1);
});

test('takes a page to sign in at for no list, and follows no redirect with its token', async t => {
  const html = await reading(t, () => ({ body: '<html>', headers: { 'Content-Type': 'text/html' } }));
  await assert.rejects(html.list(), /no page of a list/);
  const moved = await reading(t, () => ({ status: 302, headers: { Location: '/elsewhere' }, body: '' }));
  await assert.rejects(moved.list(), /no answer/);
  assert.equal(moved.portal.calls.length, 1);
});

test('does not wait for ever, nor for a sweep that was stopped', async t => {
  const { list } = await reading(t, () => ({ hang: true }), { timeoutMs: 50 });
  await assert.rejects(list(), /no answer: .*timeout/i);
  await assert.rejects(list(AbortSignal.abort(new Error('stopped'))), /no answer/);
});

test('a list whose pages have no cursor is an error', async t => {
  const { list } = await reading(t, () => page([], '/api/v1/teams/'));
  await assert.rejects(list(), /no cursor/);
});
