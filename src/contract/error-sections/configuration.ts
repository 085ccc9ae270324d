import type { ErrorSections } from './section.ts'

export const configuration = {
  'config-invalid': {
    meaning:
      'The configuration, or a change to it, contains a mistake. At the start the gateway then does not run. A running gateway keeps its previous configuration.',
    steps: [
      'Correct the line and the key that the message names.',
      'Run `sallyport config check` to check the file before the next start.',
      'See the reference of all settings in `docs/reference/configuration.md`.',
    ],
    guide: 'running.md#serve',
    numbers: ['http', 'exit'],
  },
  'config-unreadable': {
    meaning:
      'The configuration file, or a certificate that it names, cannot be read or saved. It does not exist, is not a file, or the file permissions do not allow it.',
    example: '/etc/sallyport/sallyport.yaml cannot be read: permission denied',
    steps: [
      'Run `sallyport config path` to see which file is used.',
      'Check that the file exists, and that the user of the gateway can read it. To save changes, the gateway must be able to write its folder.',
    ],
    guide: 'running.md#serve',
    numbers: ['http', 'exit'],
  },
  'config-conflict': {
    meaning:
      'Somebody else changed or removed the same entry while you were changing it. Your change was not saved, so that it does not overwrite the other one.',
    example: 'files was changed by somebody else since it was opened',
    steps: [
      'Look at the current version, for example with `sallyport config show` or `sallyport servers get NAME`.',
      'Make your change again. The text from an editor is kept in a temporary file that the message names.',
    ],
    guide: 'command-line.md#editing',
    numbers: ['http', 'exit'],
  },
  'import-unreadable': {
    meaning:
      'The text of an import is not JSON, YAML or TOML, or it is too large, nested too deeply or has too many servers. Nothing was saved.',
    example: 'The text is larger than 1 MiB',
    steps: [
      'Check that the text is complete: with its first and last bracket, and with the indentation of YAML.',
      'Import a large file in parts, or send only the part that contains the servers.',
    ],
    guide: 'import.md',
    numbers: ['http', 'exit'],
  },
  'import-unrecognised': {
    meaning: 'The text of an import was read, but it contains no list of servers in a known form. Nothing was saved.',
    steps: [
      'Put a single server into `{ "mcpServers": { "NAME": { … } } }`.',
      'Compare the text with the forms that the message and the guide list.',
    ],
    guide: 'import.md',
    numbers: ['http', 'exit'],
  },
  'import-changed': {
    meaning:
      'An import was applied with the hash of a preview that is no longer correct: the text, the scope, the rights or the servers of the gateway have changed since. Nothing was saved.',
    steps: ['Make the preview again, look at it, and apply it with its hash.'],
    guide: 'import.md',
    numbers: ['http', 'exit'],
  },
  'variable-missing': {
    meaning:
      'A `${NAME}` in the definition of a server has no value that this server is allowed to use. Only this server fails; the others start.',
    example: 'A variable is missing: GITHUB_TOKEN (it is set, but not listed under `environment`)',
    steps: [
      'Store the value as a secret: `sallyport secrets set NAME`. The server then connects automatically.',
      'Or set the variable where the gateway starts, and list its name under `environment` in the configuration.',
      'If the secret is bound to a host or a server, check that the binding matches this server.',
    ],
    guide: 'secrets.md#scopes-of-secrets',
  },
  'secret-not-found': {
    meaning: 'No secret has this name in this scope.',
    example: 'There is no secret GITHUB_TOKEN in global',
    steps: [
      'Run `sallyport secrets list` to see the names with their scopes.',
      'If the secret belongs to another scope, add `--scope`, for example `--scope project:shop`.',
    ],
    guide: 'secrets.md',
    numbers: ['http', 'exit'],
  },
  'key-invalid': {
    meaning:
      'The key that encrypts the secrets is missing, cannot be read or has the wrong form. A key is 32 bytes, as base64 or hexadecimal text. The gateway does not start.',
    example: 'The key file /etc/sallyport/key does not exist',
    steps: [
      'Correct `SALLYPORT_KEY`, or the file that `SALLYPORT_KEY_FILE` names.',
      'For a new gateway without secrets, `openssl rand -base64 32` creates a key.',
      'For existing data, restore the old key from its copy. A new key cannot decrypt the stored secrets.',
    ],
    guide: 'secrets.md#the-key',
    numbers: ['exit'],
  },
  'key-wrong': {
    meaning:
      'The key is valid, but the secrets in this database were encrypted with another key. The gateway does not start, or does not save a secret.',
    example: 'SALLYPORT_KEY is not the one that the secrets in this database are encrypted under',
    steps: [
      'Start the gateway with the key that was used before, in `SALLYPORT_KEY` or in the key file.',
      'To change the key, start once with the new key in `SALLYPORT_KEY` and the old key in `SALLYPORT_KEY_PREVIOUS`.',
      'If several gateways share a database, give all of them the same key.',
    ],
    guide: 'secrets.md#the-key',
    numbers: ['http', 'exit'],
  },
  'webhook-not-found': {
    meaning: 'The configuration has no webhook with this name.',
    example: 'No webhook is named chat',
    steps: ['Run `sallyport webhooks list` to see the names.'],
    guide: 'webhooks.md',
    numbers: ['http', 'exit'],
  },
  'delivery-not-found': {
    meaning: 'No delivery of a webhook has this id. Deliveries that failed are deleted after 30 days.',
    example: 'No delivery has the id msg_01k',
    steps: ['Run `sallyport webhooks deliveries --state failed` to see the deliveries that can be sent again.'],
    guide: 'webhooks.md#retries',
    numbers: ['http', 'exit'],
  },
} as const satisfies ErrorSections
