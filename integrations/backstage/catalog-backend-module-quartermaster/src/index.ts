export { catalogModuleQuartermaster as default } from './module';
