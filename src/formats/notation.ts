/** `${NAME}` or `${NAME:-fallback}`. */
export type Variable = { readonly name: string; readonly fallback?: string | undefined }
export type Piece = string | Variable

/** What a reference in the notation of a program means. */
export type Reference = {
  readonly piece: Piece
  readonly note?: string
  /** Set for a variable whose value the person has to supply. */
  readonly need?: { readonly secret: boolean; readonly description?: string | undefined }
}

/** How a program writes variables in its texts. */
export type Notation = {
  /** Finds references. Must have the flag `g`. */
  readonly pattern: RegExp
  read(match: RegExpMatchArray): Reference
  /** The text for a variable; undefined if the program cannot express it. */
  write(variable: Variable): string | undefined
  /** False if the program does not replace variables: then `${NAME}` is written for the person to replace. */
  readonly replaces: boolean
}

/** Splits a text of Sallyport. Text that is not a valid template stays text. */
export function splitCanonical(text: string): Piece[] {
  const pieces: Piece[] = []
  let literal = ''
  let end = 0
  for (const match of text.matchAll(/\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-((?:[^}$]|\$(?!\{))*))?\}/g)) {
    literal += text.slice(end, match.index)
    end = match.index + match[0].length
    if (match[1] === undefined) {
      literal += '${'
      continue
    }
    pieces.push(literal, { name: match[1], fallback: match[2] })
    literal = ''
  }
  return [...pieces, literal + text.slice(end)].filter((piece) => piece !== '')
}

/** Writes a literal `${` as `$${`. */
export function joinCanonical(pieces: readonly Piece[]): string {
  return pieces
    .map((piece) => (typeof piece === 'string' ? piece.replaceAll('${', () => '$${') : toTemplate(piece)))
    .join('')
}

export function toTemplate({ name, fallback }: Variable): string {
  return fallback === undefined ? `\${${name}}` : `\${${name}:-${fallback}}`
}

/** `github-token` becomes `GITHUB_TOKEN`. */
export function toVariableName(text: string): string {
  const name = text
    .toUpperCase()
    .replace(/[^A-Z0-9_]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, 100)
  if (name === '') return 'VALUE'
  return /^[0-9]/.test(name) ? `_${name}` : name
}

/** Keeps a name that is already valid, whatever its case. */
export function keepVariableName(text: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text) ? text : toVariableName(text)
}

const shell = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-((?:[^}$]|\$(?!\{))*))?\}/g

/** `${NAME}` and `${NAME:-fallback}`, as in Sallyport. */
export const shellNotation: Notation = {
  pattern: shell,
  read: ([, name = '', fallback]) => ({ piece: { name, fallback } }),
  write: toTemplate,
  replaces: true,
}

/** For programs that pass every text on as it is. People paste `${NAME}` there all the same. */
export const plainNotation: Notation = {
  pattern: shell,
  read: ([, name = '', fallback]) => ({
    piece: { name, fallback },
    note: 'was plain text there and is a variable here',
  }),
  write: toTemplate,
  replaces: false,
}

const editorFolders: Readonly<Record<string, string>> = {
  userHome: 'the home folder of the user',
  workspaceFolder: 'the folder that was open in the program',
  workspaceFolderBasename: 'the name of the folder that was open in the program',
  workspaceRoot: 'the folder that was open in the program',
  pathSeparator: 'the path separator of the system',
  '/': 'the path separator of the system',
}

export type Inputs = ReadonlyMap<string, { readonly secret: boolean; readonly description?: string | undefined }>

/** `${env:NAME}`, `${input:id}` and the folders of an editor. */
export function editorNotation(inputs: Inputs = new Map()): Notation {
  return {
    pattern: /\$\{(?:(env|input):([^}\s$]+)|([A-Za-z_/][A-Za-z0-9_]*))\}/g,
    read([, kind, id = '', word = '']) {
      if (kind === 'env') return { piece: { name: keepVariableName(id) } }
      if (kind === 'input') {
        const input = inputs.get(id) ?? { secret: true }
        return { piece: { name: toVariableName(id) }, need: input }
      }
      const folder = Object.hasOwn(editorFolders, word) ? editorFolders[word] : undefined
      if (folder === undefined) {
        const note = 'was plain text there and is a variable here'
        return { piece: { name: keepVariableName(word) }, note }
      }
      if (word === '/' || word === 'pathSeparator') return { piece: '/' }
      const name = toVariableName(word.replace(/[A-Z]/g, (letter) => `_${letter}`))
      return {
        piece: { name },
        need: { secret: false, description: folder },
        note: `depends on the program (${folder}): write the path instead of \${${name}}`,
      }
    },
    write: ({ name, fallback }) => (fallback === undefined ? `\${env:${name}}` : undefined),
    replaces: true,
  }
}

/** `{env:NAME}` and `{file:path}`. */
export const openCodeNotation: Notation = {
  pattern: /\{(env|file):([^}\s{]+)\}/g,
  read([, kind, id = '']) {
    if (kind === 'env') return { piece: { name: keepVariableName(id) } }
    const name = toVariableName(id.split(/[\\/]/).at(-1) ?? id)
    return {
      piece: { name },
      need: { secret: true, description: 'the content of the file that the entry names' },
      note: `was the content of a file, which is not read: store it as \${${name}}`,
    }
  },
  write: ({ name, fallback }) => (fallback === undefined ? `{env:${name}}` : undefined),
  replaces: true,
}

/** `$NAME`, `${NAME}`, `${NAME:-fallback}` and `%NAME%`. `%C3%` is an encoded character and not a variable. */
export const geminiNotation: Notation = {
  pattern:
    /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-((?:[^}$]|\$(?!\{))*))?\}|\$([A-Za-z_][A-Za-z0-9_]*)|%(?=[A-Z0-9]*[G-Z_])([A-Z_][A-Z0-9_]*)%/g,
  read: ([, braced, fallback, bare, percent]) => ({ piece: { name: braced ?? bare ?? percent ?? '', fallback } }),
  write: toTemplate,
  replaces: true,
}

/** `${NAME}`, and `{{NAME}}` for a value that each user has. */
export const libreChatNotation: Notation = {
  pattern: /\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\{\{([A-Za-z0-9_-]+)\}\}/g,
  read([, name, perUser = '']) {
    if (name !== undefined) return { piece: { name } }
    const own = keepVariableName(perUser)
    return {
      piece: { name: own },
      need: { secret: true },
      note: `was a value of each user; here \${${own}} is one value for all`,
    }
  },
  write: ({ name, fallback }) => (fallback === undefined ? `\${${name}}` : undefined),
  replaces: true,
}
