import { setTimeout as sleep } from 'node:timers/promises';
import type { LoggerService } from '@backstage/backend-plugin-api';

const PAGE = 100;
// A list that goes round in circles ends here, as an error: 100,000 rows are more than any portal has.
const MOST_PAGES = 1000;
const TRIES = 3;
// Whoever is told to wait longer comes back with the next sweep.
const LONGEST_WAIT_SECONDS = 60;

export interface PortalOptions {
  baseUrl: string;
  token: string;
  logger: LoggerService;
  timeoutMs?: number;
}

interface Page {
  next: string | null;
  results: unknown[];
}

/** Reads lists of the portal, whole or not at all. */
export class Portal {
  readonly baseUrl: string;

  constructor(private readonly options: PortalOptions) {
    this.baseUrl = options.baseUrl.replace(/\/+$/, '');
  }

  /** Every row of a list. Throws when any page of it could not be had. */
  async list<Row>(path: string, query: Record<string, string>, signal: AbortSignal): Promise<Row[]> {
    const rows: Row[] = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const page = await this.page(path, { ...query, limit: String(PAGE), ...(cursor && { cursor }) }, signal);
      rows.push(...(page.results as Row[]));
      if (page.next === null) {
        return rows;
      }
      // Only the cursor is taken: the address may be one that leads here from elsewhere only, and the token goes nowhere else.
      cursor = new URL(page.next, this.baseUrl).searchParams.get('cursor') ?? undefined;
      if (!cursor) {
        throw new Error(`${path}: its link to the next page has no cursor`);
      }
    }
    throw new Error(`${path}: more than ${MOST_PAGES} pages`);
  }

  private async page(path: string, query: Record<string, string>, signal: AbortSignal): Promise<Page> {
    const url = `${this.baseUrl}/api/v1/${path}/?${new URLSearchParams(query)}`;
    for (let tried = 1; ; tried++) {
      const response = await this.get(url, path, signal);
      if (response.ok) {
        return asPage(await response.json().catch(() => undefined), path);
      }
      const wait = retryAfter(response);
      const said = await reason(response);
      if (wait === undefined || tried === TRIES) {
        throw new Error(`${path}: ${said}`);
      }
      this.options.logger.info(`Quartermaster: ${path}: ${said}; again in ${wait} s`);
      await sleep(wait * 1000, undefined, { signal });
    }
  }

  private async get(url: string, path: string, signal: AbortSignal): Promise<Response> {
    const timeout = AbortSignal.timeout(this.options.timeoutMs ?? 30_000);
    try {
      return await fetch(url, {
        headers: { Accept: 'application/json', Authorization: `Bearer ${this.options.token}` },
        // The token must not follow to another address, and a page to sign in at is no list.
        redirect: 'error',
        signal: AbortSignal.any([signal, timeout]),
      });
    } catch (error) {
      // What went wrong on the wire is in the cause: "fetch failed" tells nothing.
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      throw new Error(`${path}: no answer: ${cause instanceof Error ? cause.message : cause}`);
    }
  }
}

function asPage(body: unknown, path: string): Page {
  const page = body as Partial<Page> | null | undefined;
  if (!page || !Array.isArray(page.results) || !(page.next === null || typeof page.next === 'string')) {
    throw new Error(`${path}: the answer is no page of a list: is baseUrl that of the portal?`);
  }
  return page as Page;
}

/** Seconds to wait before the same call may help; undefined where it would not. */
function retryAfter(response: Response): number | undefined {
  if (response.status !== 429 && response.status !== 503) {
    return undefined;
  }
  const seconds = Number(response.headers.get('Retry-After') ?? '5');
  return Number.isFinite(seconds) && seconds >= 0 && seconds <= LONGEST_WAIT_SECONDS ? seconds : undefined;
}

/** A line of why, from the portal's own words where it has some. */
async function reason(response: Response): Promise<string> {
  const problem = (await response.json().catch(() => undefined)) as { detail?: unknown } | null | undefined;
  const detail = typeof problem?.detail === 'string' ? `: ${problem.detail}` : '';
  return `${response.status}${detail}`;
}
