import type { Migration } from './migration.ts'

/**
 * Rows refer to users and agents by id, because a name can be used again after a removal. Existing rows get ids made
 * from kind and name. A removed identity gives up its name: `kim` becomes `kim~<id>`. Earlier versions kept the agents,
 * secrets and grants of a removed user; this migration removes them.
 */
export const identityIds: Migration = {
  id: 14,
  name: 'ids of identities',
  statements: [
    'alter table users add column id text',
    "update users set id = 'user-' || name",
    'create unique index users_by_id on users (id)',
    'alter table agents add column id text',
    "update agents set id = 'agent-' || name",
    'create unique index agents_by_id on agents (id)',
    'alter table agents add column owner_id text',
    "update agents set owner_id = 'user-' || owner where owner is not null",
    'drop index agents_by_owner',
    'alter table agents drop column owner',
    'create index agents_by_owner on agents (owner_id)',
    'alter table sessions add column owner_id text',
    "update sessions set owner_id = 'user-' || owner where owner is not null",
    'drop index sessions_by_owner',
    'alter table sessions drop column owner',
    'create index sessions_by_owner on sessions (owner_id)',
    'alter table sessions add column agent_id text',
    "update sessions set agent_id = 'agent-' || agent where agent is not null",
    'alter table sessions drop column agent',
    'alter table tokens add column holder_id text',
    "update tokens set holder_id = kind || '-' || name",
    'alter table sign_ins add column user_id text',
    "update sign_ins set user_id = 'user-' || user_name",
    'alter table secrets add column owner_id text',
    "update secrets set owner_id = replace(scope, ':', '-') where scope like 'user:%'",
    'alter table calls add column principal_id text',
    "update calls set principal_id = replace(principal, ':', '-')",
    'alter table questions add column principal_id text',
    "update questions set principal_id = replace(principal, ':', '-')",
    "update questions set live = binding || ' ' || principal_id where live is not null",
    'alter table grants add column principal_id text',
    "update grants set principal_id = replace(principal, ':', '-') where principal is not null",
    'alter table grants add column giver_id text',
    "update grants set giver_id = 'user-' || given_by",
    "update results set principal = replace(principal, ':', '-')",
    "update idempotency set principal = replace(principal, ':', '-')",
    `update agents set removed_at = (select removed_at from users where users.id = agents.owner_id)
      where removed_at is null and owner_id in (select id from users where removed_at is not null)`,
    `update tokens set revoked_at = (select removed_at from agents where agents.id = tokens.holder_id)
      where revoked_at is null and holder_id in (select id from agents where removed_at is not null)`,
    'delete from secrets where owner_id in (select id from users where removed_at is not null)',
    `update grants set revoked_by = 'removal', revoked_at = (select removed_at from users where 'user:' || users.name = grants.scope)
      where revoked_at is null and scope in (select 'user:' || name from users where removed_at is not null)`,
    `update grants set revoked_by = 'removal', revoked_at = (select removed_at from agents where 'agent:' || agents.name = grants.scope)
      where revoked_at is null and scope in (select 'agent:' || name from agents where removed_at is not null)`,
    'delete from sign_ins where user_name in (select name from users where removed_at is not null)',
    "update users set name = name || '~' || id where removed_at is not null",
    "update agents set name = name || '~' || id where removed_at is not null",
  ],
}
