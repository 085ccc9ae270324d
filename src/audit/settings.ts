import { dirname, resolve } from 'node:path'
import type { AuditSettings } from '../contract/config.ts'

/** Resolves the anchor file relative to the folder of the configuration file. */
export function toAuditSettings(settings: AuditSettings, configFile: string): AuditSettings {
  const { file } = settings.anchors
  if (file === undefined) return settings
  return { ...settings, anchors: { ...settings.anchors, file: resolve(dirname(configFile), file) } }
}
