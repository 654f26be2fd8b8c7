import {
  coreServices,
  createBackendModule,
  readSchedulerServiceTaskScheduleDefinitionFromConfig,
} from '@backstage/backend-plugin-api';
import { catalogProcessingExtensionPoint, catalogServiceRef } from '@backstage/plugin-catalog-node';
import { Portal } from './portal';
import { QuartermasterProvider } from './provider';

const SCHEDULE = { frequency: { minutes: 15 }, timeout: { minutes: 10 }, initialDelay: { seconds: 15 } };

/** Puts the teams of Quartermaster and what they hold into the catalog. Does nothing without `quartermaster` in app-config. */
export const catalogModuleQuartermaster = createBackendModule({
  pluginId: 'catalog',
  moduleId: 'quartermaster',
  register(env) {
    env.registerInit({
      deps: {
        auth: coreServices.auth,
        catalog: catalogServiceRef,
        config: coreServices.rootConfig,
        logger: coreServices.logger,
        processing: catalogProcessingExtensionPoint,
        scheduler: coreServices.scheduler,
      },
      async init({ auth, catalog, config, logger, processing, scheduler }) {
        const own = config.getOptionalConfig('quartermaster');
        if (!own) {
          logger.info('Quartermaster: no `quartermaster` in app-config, so the catalog gets nothing from it');
          return;
        }
        const portal = new Portal({ baseUrl: own.getString('baseUrl'), token: own.getString('token'), logger });
        const schedule = own.has('schedule')
          ? readSchedulerServiceTaskScheduleDefinitionFromConfig(own.getConfig('schedule'))
          : SCHEDULE;
        const taskRunner = scheduler.createScheduledTaskRunner(schedule);
        processing.addEntityProvider(new QuartermasterProvider({ portal, catalog, auth, logger, taskRunner }));
      },
    });
  },
});
