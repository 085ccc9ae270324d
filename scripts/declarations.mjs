// The type declarations of the library. The compiler writes declarations for every source file. Only those that the public
// ones refer to are shipped: the others show internals and name packages that users of the library do not have.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Writes the declarations that `entry`, such as `library/library.d.ts`, needs into the folder `to`. */
export async function buildDeclarations({ root, project, entry, to }) {
  const everything = await mkdtemp(join(tmpdir(), 'sallyport-types-'))
  try {
    const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    await run(process.execPath, [compiler, '-p', project, '--outDir', everything], { cwd: root }).catch((error) => {
      throw new Error(`The types of the library cannot be built:\n${error.stdout}${error.stderr}`)
    })
    const files = await collect(join(everything, entry))
    await rm(to, { recursive: true, force: true })
    for (const file of files) {
      const path = join(to, relative(everything, file.path))
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, toText(file))
    }
  } finally {
    await rm(everything, { recursive: true, force: true })
  }
}

/** Follows every name that the entry exports to its declaration, and from there every name that the declaration mentions. */
async function collect(entry) {
  const { parseAst } = await import('rolldown/parseAst')
  const files = new Map()

  async function read(path) {
    const known = files.get(path)
    if (known) return known
    const text = await readFile(path, 'utf8')
    const file = { path, text, statements: parseAst(text, { lang: 'dts' }, path).body, names: new Set() }
    files.set(path, file)
    return file
  }

  async function need(path, name) {
    const file = await read(path)
    if (file.names.has(name)) return
    file.names.add(name)
    for (const statement of file.statements) {
      const specifiers = statement.specifiers?.filter((specifier) => nameOf(specifier) === name) ?? []
      for (const specifier of specifiers) {
        if (isOwn(statement.source)) await need(toPath(file, statement.source), targetOf(specifier))
      }
      if (!declaredBy(statement).includes(name)) continue
      const { names, imports } = mentionedBy(statement)
      for (const mentioned of names) await need(path, mentioned)
      for (const { source, member } of imports) if (isOwn(source)) await need(toPath(file, source), member)
    }
  }

  const { statements } = await read(entry)
  for (const statement of statements) {
    for (const specifier of statement.specifiers ?? []) await need(entry, nameOf(specifier))
  }
  return files.values()
}

/** The name in the file that imports or re-exports it. */
const nameOf = (specifier) => (specifier.exported ?? specifier.local).name
/** The name in the file that it comes from. */
const targetOf = (specifier) => (specifier.imported ?? specifier.local).name
const isOwn = (source) => source?.value.startsWith('.') ?? false
const toPath = (file, source) => resolve(dirname(file.path), source.value.replace(/\.ts$/, '.d.ts'))

function declaredBy(statement) {
  const declaration = statement.declaration ?? statement
  const declared = declaration.type === 'VariableDeclaration' ? declaration.declarations : [declaration]
  return declared.flatMap(({ id }) => (id ? [id.name] : []))
}

/** Also names of parameters. A parameter with the name of a type keeps that type, which does no harm. */
function mentionedBy(node, found = { names: new Set(), imports: [] }) {
  if (node.type === 'Identifier') found.names.add(node.name)
  if (node.type === 'TSImportType') found.imports.push({ source: node.source, member: firstOf(node.qualifier) })
  for (const [key, value] of Object.entries(node)) {
    if (key === 'key' && !node.computed) continue
    for (const part of [value].flat()) if (typeof part?.type === 'string') mentionedBy(part, found)
  }
  return found
}

function firstOf(qualifier) {
  return qualifier.left ? firstOf(qualifier.left) : qualifier.name
}

function toText({ text, statements, names }) {
  let end = 0
  const kept = statements.map((statement) => {
    const comment = text.slice(end, statement.start)
    end = statement.end
    if (declaredBy(statement).some((name) => names.has(name))) return comment + text.slice(statement.start, end)
    const specifiers = statement.specifiers?.filter((specifier) => names.has(nameOf(specifier))) ?? []
    if (specifiers.length === 0) return ''
    // The statement as it was, with only the needed names between its braces.
    const [before, after] = [statement.specifiers[0].start, statement.specifiers.at(-1).end]
    const list = specifiers.map((specifier) => text.slice(specifier.start, specifier.end)).join(', ')
    return comment + text.slice(statement.start, before) + list + text.slice(after, end)
  })
  return `${kept.join('').trimStart()}\nexport {};\n`
}
