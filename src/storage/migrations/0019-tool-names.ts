import type { Migration } from './migration.ts'

/** Which tool a public name belongs to. `space` is `shared` for the scopes of administrators, otherwise one scope. */
export const toolNames: Migration = {
  id: 19,
  name: 'tool names',
  statements: [
    `create table tool_names (
      space text not null,
      name text not null,
      server text not null,
      tool text not null,
      assigned_at bigint not null,
      primary key (space, name)
    )`,
  ],
}
