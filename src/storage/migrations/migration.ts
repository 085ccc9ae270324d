/**
 * SQL that both SQLite and PostgreSQL accept: types text, integer, bigint, double precision; binary values as text.
 * `without rowid` at the end of a table is for SQLite and is removed for PostgreSQL.
 */
export type Migration = { readonly id: number; readonly name: string; readonly statements: readonly string[] }
