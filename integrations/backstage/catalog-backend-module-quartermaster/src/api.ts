// What is used of the portal's REST API, version 1.

export interface Team {
  slug: string;
  name: string;
  tier: string;
  entra_group: string;
}

export interface Allocation {
  id: number;
  team: { slug: string; name: string };
  offering: string;
  what: string;
  where: string;
  tenancy: number | null;
}

/** A team's namespace on a cluster. */
export interface Tenancy {
  id: number;
  team: { slug: string; name: string };
  cluster: string;
  environment: string;
  namespace: string;
  presence: string;
}
