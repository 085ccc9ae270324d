import { dirname, resolve } from 'node:path'
import type { AuditSettings } from '../contract/config.ts'

/** With the file of anchors where it is meant: beside the configuration, unless it says more. */
export function toAuditSettings(settings: AuditSettings, configFile: string): AuditSettings {
  const { file } = settings.anchors
  if (file === undefined) return settings
  return { ...settings, anchors: { ...settings.anchors, file: resolve(dirname(configFile), file) } }
}
