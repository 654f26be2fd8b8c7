import {
  ANNOTATION_LOCATION,
  ANNOTATION_ORIGIN_LOCATION,
  ANNOTATION_VIEW_URL,
  type Entity,
} from '@backstage/catalog-model';
import type { Allocation, Team, Tenancy } from './api';

export const TEAM_ANNOTATION = 'quartermaster.dev/team';
export const ALLOCATION_ANNOTATION = 'quartermaster.dev/allocation';
export const TENANCY_ANNOTATION = 'quartermaster.dev/tenancy';
// Of Backstage's plugin for Kubernetes, which shows what is in the namespace.
const NAMESPACE_ANNOTATION = 'backstage.io/kubernetes-namespace';

const NAME_LENGTH = 63;
const PREFIX = 'gpu-team-';

/** The owner of what a team has: a reference to a Group. */
export type OwnerOf = (team: Team) => string;

/** A team as a System. Nothing in it changes from day to day: each change makes the catalog work. */
export function teamEntity(team: Team, baseUrl: string, owner: string): Entity {
  const page = `${baseUrl}/teams/${encodeURIComponent(team.slug)}/`;
  return {
    apiVersion: 'backstage.io/v1alpha1',
    kind: 'System',
    metadata: {
      name: systemName(team.slug),
      title: team.name,
      description: `What the team ${team.name} holds of GPUs and the like.`,
      annotations: { ...managed(page), [TEAM_ANNOTATION]: team.slug },
      tags: ['gpu', ...(isTag(team.tier) ? [team.tier] : [])],
      links: [
        { url: page, title: 'In Quartermaster', icon: 'dashboard' },
        { url: `${baseUrl}/requests/new?team=${encodeURIComponent(team.slug)}`, title: 'Request GPUs' },
      ],
    },
    spec: { owner, type: 'gpu-team' },
  };
}

/** A team's namespace on a cluster as a Resource. */
export function namespaceEntity(tenancy: Tenancy, baseUrl: string, owner: string): Entity {
  const page = `${baseUrl}/teams/${encodeURIComponent(tenancy.team.slug)}/`;
  return {
    apiVersion: 'backstage.io/v1alpha1',
    kind: 'Resource',
    metadata: {
      name: namespaceName(tenancy.id),
      title: `${tenancy.namespace} on ${tenancy.cluster}`,
      annotations: {
        ...managed(page),
        [TEAM_ANNOTATION]: tenancy.team.slug,
        [TENANCY_ANNOTATION]: String(tenancy.id),
        [NAMESPACE_ANNOTATION]: tenancy.namespace,
      },
      ...(isTag(tenancy.environment) && { tags: [tenancy.environment] }),
      links: [{ url: page, title: 'In Quartermaster', icon: 'dashboard' }],
    },
    spec: { owner, type: 'gpu-namespace', system: `system:default/${systemName(tenancy.team.slug)}` },
  };
}

/** Something that a team holds as a Resource; `namespaces` are the tenancies that are in the catalog. */
export function allocationEntity(
  allocation: Allocation,
  baseUrl: string,
  owner: string,
  namespaces: ReadonlySet<number>,
): Entity {
  const { tenancy } = allocation;
  const page = `${baseUrl}/teams/${encodeURIComponent(allocation.team.slug)}/`;
  return {
    apiVersion: 'backstage.io/v1alpha1',
    kind: 'Resource',
    metadata: {
      name: `gpu-allocation-${allocation.id}`,
      title: allocation.what,
      ...(allocation.where && { description: allocation.where }),
      annotations: {
        ...managed(page),
        [TEAM_ANNOTATION]: allocation.team.slug,
        [ALLOCATION_ANNOTATION]: String(allocation.id),
      },
      ...(isTag(allocation.offering) && { tags: [allocation.offering] }),
      links: [{ url: page, title: 'In Quartermaster', icon: 'dashboard' }],
    },
    spec: {
      owner,
      type: 'gpu-allocation',
      system: `system:default/${systemName(allocation.team.slug)}`,
      ...(tenancy !== null &&
        namespaces.has(tenancy) && { dependsOn: [`resource:default/${namespaceName(tenancy)}`] }),
    },
  };
}

/** The name of a team's System. A slug has at most 40 characters, so it always fits. */
export function systemName(slug: string): string {
  return `${PREFIX}${slug}`.slice(0, NAME_LENGTH);
}

function namespaceName(tenancy: number): string {
  return `gpu-namespace-${tenancy}`;
}

/** Who owns what a team has: the Group made from the same group of Entra, else one that is called as the team is. */
export function owners(groups: Entity[]): OwnerOf {
  const byId = new Map<string, string>();
  for (const group of groups) {
    const id = group.metadata.annotations?.[GROUP_ANNOTATION];
    if (id) {
      byId.set(id.toLowerCase(), `group:${group.metadata.namespace ?? 'default'}/${group.metadata.name}`);
    }
  }
  return team => byId.get(team.entra_group.toLowerCase()) ?? `group:default/${team.slug}`;
}

/** Written by the provider of Microsoft Graph: the object id of the group in Entra. */
export const GROUP_ANNOTATION = 'graph.microsoft.com/group-id';

function managed(page: string): Record<string, string> {
  return {
    [ANNOTATION_LOCATION]: `url:${page}`,
    [ANNOTATION_ORIGIN_LOCATION]: `url:${page}`,
    [ANNOTATION_VIEW_URL]: page,
  };
}

// The catalog refuses an entity as a whole for one tag that is none.
function isTag(word: string): boolean {
  return word.length <= 63 && /^[a-z0-9+#:]+(-[a-z0-9+#:]+)*$/.test(word);
}
