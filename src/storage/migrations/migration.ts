/**
 * SQL that SQLite and PostgreSQL both understand: types text, integer, bigint, double precision, blob-like values as text.
 * `without rowid` at the end of a table is for SQLite; PostgreSQL gets the statement without it.
 */
export type Migration = { readonly id: number; readonly name: string; readonly statements: readonly string[] }
