import type { SchedulerServiceTaskScheduleDefinitionConfig } from '@backstage/backend-plugin-api';

export interface Config {
  quartermaster?: {
    /** The address of the portal: `https://gpus.example.com`. */
    baseUrl: string;

    /**
     * A token of the portal that reads (`qm_…`). The catalog shows everybody what its owner may see.
     * @visibility secret
     */
    token: string;

    /** When the teams are read again; every 15 minutes unless told otherwise. */
    schedule?: SchedulerServiceTaskScheduleDefinitionConfig;
  };
}
