import { z } from 'zod'
import { GalleryEntry } from '../contract/gallery.ts'
import ai from './entries/ai.json' with { type: 'json' }
import analytics from './entries/analytics.json' with { type: 'json' }
import automation from './entries/automation.json' with { type: 'json' }
import browser from './entries/browser.json' with { type: 'json' }
import communication from './entries/communication.json' with { type: 'json' }
import crm from './entries/crm.json' with { type: 'json' }
import custom from './entries/custom.json' with { type: 'json' }
import database from './entries/database.json' with { type: 'json' }
import design from './entries/design.json' with { type: 'json' }
import developer from './entries/developer.json' with { type: 'json' }
import documentation from './entries/documentation.json' with { type: 'json' }
import hosting from './entries/hosting.json' with { type: 'json' }
import knowledge from './entries/knowledge.json' with { type: 'json' }
import local from './entries/local.json' with { type: 'json' }
import observability from './entries/observability.json' with { type: 'json' }
import payments from './entries/payments.json' with { type: 'json' }
import projectManagement from './entries/project-management.json' with { type: 'json' }
import search from './entries/search.json' with { type: 'json' }

const categories = [
  ai,
  analytics,
  automation,
  browser,
  communication,
  crm,
  custom,
  database,
  design,
  developer,
  documentation,
  hosting,
  knowledge,
  local,
  observability,
  payments,
  projectManagement,
  search,
].flat()

/** The entries that come with the package, by id. */
export const builtIn: ReadonlyMap<string, GalleryEntry> = new Map(
  z
    .array(GalleryEntry)
    .parse(categories)
    .map((entry) => [entry.id, entry]),
)
