import type { AuthService, LoggerService, SchedulerServiceTaskRunner } from '@backstage/backend-plugin-api';
import { CATALOG_FILTER_EXISTS } from '@backstage/catalog-client';
import type { Entity } from '@backstage/catalog-model';
import type { CatalogService, EntityProvider, EntityProviderConnection } from '@backstage/plugin-catalog-node';
import type { Allocation, Team, Tenancy } from './api';
import { GROUP_ANNOTATION, allocationEntity, namespaceEntity, owners, teamEntity } from './entities';
import type { Portal } from './portal';

export const TASK_ID = 'quartermaster-teams';

export interface QuartermasterProviderOptions {
  portal: Portal;
  catalog: Pick<CatalogService, 'getEntities'>;
  auth: Pick<AuthService, 'getOwnServiceCredentials'>;
  logger: LoggerService;
  taskRunner: SchedulerServiceTaskRunner;
}

/** Keeps the catalog's Systems and Resources as the portal's teams and what they hold. */
export class QuartermasterProvider implements EntityProvider {
  private connection?: EntityProviderConnection;

  constructor(private readonly options: QuartermasterProviderOptions) {}

  getProviderName(): string {
    return 'quartermaster';
  }

  async connect(connection: EntityProviderConnection): Promise<void> {
    this.connection = connection;
    await this.options.taskRunner.run({ id: TASK_ID, fn: signal => this.sweep(signal) });
  }

  /** Reads all and puts it into the catalog. Anything that cannot be read leaves the catalog as it is. */
  async sweep(signal: AbortSignal): Promise<void> {
    const { logger, portal } = this.options;
    if (!this.connection) {
      throw new Error('Quartermaster: not connected to the catalog yet');
    }
    const began = Date.now();
    let entities: Entity[];
    try {
      entities = await this.read(signal);
    } catch (error) {
      // Not thrown on: the scheduler would say the same again, with a stack that helps nobody.
      const why = error instanceof Error ? error.message : String(error);
      logger.error(`Quartermaster: the catalog stays as it is: ${why}`);
      return;
    }
    // What a full mutation leaves out is deleted, so it is only made of lists that were read to their end.
    await this.connection.applyMutation({
      type: 'full',
      entities: entities.map(entity => ({ entity, locationKey: `quartermaster:${portal.baseUrl}` })),
    });
    const teams = entities.filter(({ kind }) => kind === 'System').length;
    logger.info(
      `Quartermaster: ${teams} teams with ${entities.length - teams} namespaces and allocations, in ${Date.now() - began} ms`,
    );
  }

  private async read(signal: AbortSignal): Promise<Entity[]> {
    const { portal } = this.options;
    const teams = await portal.list<Team>('teams', {}, signal);
    const held = await portal.list<Allocation>('allocations', { held: 'true' }, signal);
    const here = (await portal.list<Tenancy>('tenancies', {}, signal)).filter(({ presence }) => presence === 'here');
    const ownerOf = owners(await this.groups());
    const ownerBySlug = new Map(teams.map(team => [team.slug, ownerOf(team)]));
    const namespaces = new Set(here.map(({ id }) => id));
    return [
      ...teams.map(team => teamEntity(team, portal.baseUrl, ownerOf(team))),
      ...owned(here, ownerBySlug, (one, owner) => namespaceEntity(one, portal.baseUrl, owner)),
      ...owned(held, ownerBySlug, (one, owner) => allocationEntity(one, portal.baseUrl, owner, namespaces)),
    ];
  }

  private async groups(): Promise<Entity[]> {
    const { items } = await this.options.catalog.getEntities(
      {
        filter: { kind: 'group', [`metadata.annotations.${GROUP_ANNOTATION}`]: CATALOG_FILTER_EXISTS },
        fields: ['kind', 'metadata'],
      },
      { credentials: await this.options.auth.getOwnServiceCredentials() },
    );
    return items;
  }
}

/** The entities of those rows whose team is known: one that came in between two lists has its in the next sweep. */
function owned<Row extends { team: { slug: string } }>(
  rows: Row[],
  ownerBySlug: ReadonlyMap<string, string>,
  entity: (row: Row, owner: string) => Entity,
): Entity[] {
  return rows.flatMap(row => {
    const owner = ownerBySlug.get(row.team.slug);
    return owner ? [entity(row, owner)] : [];
  });
}
