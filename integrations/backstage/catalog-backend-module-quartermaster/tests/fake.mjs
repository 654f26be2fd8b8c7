import { createServer } from 'node:http';

/** A portal on loopback: `answer(url, request)` gives {status, headers, body} of each call; `calls` are those that came. */
export async function fakePortal(answer) {
  const calls = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://portal');
    calls.push({ path: url.pathname, query: Object.fromEntries(url.searchParams), headers: request.headers });
    const { status = 200, headers = {}, body, hang } = answer(url, request) ?? { status: 404, body: { detail: 'No such list.' } };
    if (hang) {
      return;
    }
    response.writeHead(status, { 'Content-Type': status < 300 ? 'application/json' : 'application/problem+json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    calls,
    baseUrl: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A logger that keeps its lines. */
export function keptLog() {
  const lines = [];
  const keep = level => message => void lines.push(`${level}: ${message}`);
  return { lines, info: keep('info'), warn: keep('warn'), error: keep('error'), debug: keep('debug'), child: () => keptLog() };
}

export const team = (slug, more = {}) => ({
  slug,
  name: slug[0].toUpperCase() + slug.slice(1),
  cost_centre: 'CC-1',
  tier: 'standard',
  entra_group: '00000000-0000-0000-0000-00000000000a',
  entra_group_name: `gpu-${slug}`,
  ...more,
});

export const allocation = (id, slug, more = {}) => ({
  id,
  team: { slug, name: slug },
  offering: 'gpus',
  what: '2 × A100',
  where: 'Training East US',
  tenancy: null,
  ...more,
});

export const tenancy = (id, slug, more = {}) => ({
  id,
  team: { slug, name: slug },
  cluster: 'training-eastus',
  environment: 'dev',
  namespace: `${slug}-dev`,
  presence: 'here',
  ...more,
});

export const page = (results, next = null) => ({ body: { next, previous: null, results } });
